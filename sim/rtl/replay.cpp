// Steps the verilated attention bench from C++: the yardstick for what Python costs a simulation.
//
// replay SCRIPT: lines of
//   W <address> <data>     AXI4-Lite write
//   C <hex>  /  D <hex>    queue a payload on i_command / i_data, most significant digit first
//   R <count>              run until so many STATUS beats have come in all
//   T                      start to count cycles and time
// At the end it prints "<cycles> <seconds>" since T.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

using Words = std::vector<uint32_t>;

static Words parse(const std::string& hex) {
    Words words;
    for (size_t end = hex.size(); end > 0;) {
        size_t start = end > 8 ? end - 8 : 0;
        words.push_back(static_cast<uint32_t>(std::stoul(hex.substr(start, end - start), nullptr, 16)));
        end = start;
    }
    return words;
}

template <std::size_t N>
static void drive(VlWide<N>& port, const Words& words) {
    for (std::size_t i = 0; i < N; i++) port[i] = i < words.size() ? words[i] : 0;
}

template <typename T>
static void drive(T& port, const Words& words) {
    uint64_t value = words[0];
    if (words.size() > 1) value |= static_cast<uint64_t>(words[1]) << 32;
    port = static_cast<T>(value);
}

struct Bench {
    VerilatedContext& context;
    Vtop top;
    std::deque<Words> commands, beats;
    uint64_t cycles = 0;
    int statuses = 0;

    explicit Bench(VerilatedContext& its_context) : context(its_context), top(&its_context) {}

    void step() {
        top.i_command_valid = !commands.empty();
        if (!commands.empty()) drive(top.i_command_payload, commands.front());
        top.i_data_valid = !beats.empty();
        if (!beats.empty()) drive(top.i_data_payload, beats.front());
        top.clk = 0;
        top.eval();
        bool command = top.i_command_valid && top.i_command_ready;
        bool beat = top.i_data_valid && top.i_data_ready;
        if (top.o_result_valid && (top.o_result_payload[0] & 3) == 0) statuses++;
        top.clk = 1;
        top.eval();
        context.timeInc(10);
        if (command) commands.pop_front();
        if (beat) beats.pop_front();
        cycles++;
    }

    void write(uint32_t address, uint32_t data) {
        top.s_axil_awaddr = address;
        top.s_axil_wdata = data;
        top.s_axil_wstrb = 15;
        top.s_axil_awvalid = top.s_axil_wvalid = 1;
        while (top.s_axil_awvalid || top.s_axil_wvalid) {
            top.clk = 0;
            top.eval();
            bool address_taken = top.s_axil_awready, data_taken = top.s_axil_wready;
            step();
            if (address_taken) top.s_axil_awvalid = 0;
            if (data_taken) top.s_axil_wvalid = 0;
        }
        for (int i = 0; i < 8; i++) step();
    }
};

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: replay SCRIPT READ_LATENCY\n");
        return 2;
    }
    std::ifstream script(argv[1]);
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Bench bench(context);
    bench.top.rst = 1;
    bench.top.o_result_ready = 1;
    bench.top.s_axil_bready = 1;
    bench.top.memory_read_latency = bench.top.memory_write_latency = std::atoi(argv[2]);
    bench.step();
    bench.step();
    bench.top.rst = 0;

    auto started = std::chrono::steady_clock::now();
    uint64_t first = 0;
    std::string kind;
    while (script >> kind) {
        if (kind == "W") {
            uint32_t address, data;
            script >> address >> data;
            bench.write(address, data);
        } else if (kind == "C" || kind == "D") {
            std::string hex;
            script >> hex;
            (kind == "C" ? bench.commands : bench.beats).push_back(parse(hex));
        } else if (kind == "R") {
            int count;
            script >> count;
            uint64_t limit = bench.cycles + 100000000;
            while (bench.statuses < count && bench.cycles < limit) bench.step();
            if (bench.statuses < count) {
                std::fprintf(stderr, "no answer\n");
                return 1;
            }
        } else if (kind == "T") {
            started = std::chrono::steady_clock::now();
            first = bench.cycles;
        }
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(bench.cycles - first), seconds.count());
    return 0;
}

// Called by $finish and friends in a model that cocotb also loads.
double sc_time_stamp() { return 0; }
