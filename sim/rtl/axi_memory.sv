// Memory behind an AXI4 bus, for simulation.
//
// Reads: the first beat comes `read_latency` cycles after the request was taken, then one beat per
// cycle; up to OUTSTANDING bursts per id wait at a time. Writes: the response comes `write_latency`
// cycles after the last beat. Everything returns in the order in which it was asked, unless
// `shuffle` is high: then beats of different ids are interleaved, and ready and valid come late at
// random. INCR bursts as wide as the bus only. Latencies count from 1; 0 is taken as 1.
//
// `fault` applies to bursts whose first address lies in fault_base .. fault_limit - 1, and is noted
// when the request is taken:
//   1 SLVERR on reads    2 DECERR on reads     3 read bursts one beat short (two beats or more)
//   4 read bursts one beat long                5 SLVERR on writes    6 DECERR on writes
// A write that fails stores nothing. Addresses beyond SIZE_BYTES answer DECERR.
//
// Contents are zero, or those of the file +memory=PATH ($readmemh, one word of the bus per line). A
// pulse on `load` reads that file again (memory.hex without the option), a pulse on `dump` writes
// +memory_dump=PATH (memory_dump.hex). Contents survive a reset. The backdoor reads (at once) and
// writes (at the clock edge) one word.
//
// `violations` counts what a master may not do: bursts that cross 4 KiB or are not as above, a
// misplaced wlast, and requests or data that change or vanish before they are taken.

module axi_memory #(
    parameter ADDRESS_BITS = 32,
    parameter DATA_BYTES = 16,
    parameter ID_BITS = 2,
    parameter SIZE_BYTES = 1 << 20,
    parameter OUTSTANDING = 64,
    localparam DATA_BITS = 8 * DATA_BYTES,
    localparam WORDS = SIZE_BYTES / DATA_BYTES,
    localparam WORD_BITS = $clog2(WORDS),
    localparam SIZE_LOG2 = $clog2(DATA_BYTES)
) (
    input  logic                    clk,
    input  logic                    rst,

    input  logic [15:0]             read_latency,
    input  logic [15:0]             write_latency,
    input  logic                    shuffle,
    input  logic [31:0]             seed,
    input  logic [2:0]              fault,
    input  logic [ADDRESS_BITS-1:0] fault_base,
    input  logic [ADDRESS_BITS-1:0] fault_limit,

    input  logic                    load,
    input  logic                    dump,
    input  logic                    backdoor_write,
    input  logic [31:0]             backdoor_index,
    input  logic [DATA_BITS-1:0]    backdoor_write_data,
    output logic [DATA_BITS-1:0]    backdoor_read_data,

    output logic [31:0]             read_beats,
    output logic [31:0]             write_beats,
    output logic [15:0]             violations,

    input  logic [ID_BITS-1:0]      awid,
    input  logic [ADDRESS_BITS-1:0] awaddr,
    input  logic [7:0]              awlen,
    input  logic [2:0]              awsize,
    input  logic [1:0]              awburst,
    input  logic                    awvalid,
    output logic                    awready,
    input  logic [DATA_BITS-1:0]    wdata,
    input  logic [DATA_BYTES-1:0]   wstrb,
    input  logic                    wlast,
    input  logic                    wvalid,
    output logic                    wready,
    output logic [ID_BITS-1:0]      bid,
    output logic [1:0]              bresp,
    output logic                    bvalid,
    input  logic                    bready,
    input  logic [ID_BITS-1:0]      arid,
    input  logic [ADDRESS_BITS-1:0] araddr,
    input  logic [7:0]              arlen,
    input  logic [2:0]              arsize,
    input  logic [1:0]              arburst,
    input  logic                    arvalid,
    output logic                    arready,
    output logic [ID_BITS-1:0]      rid,
    output logic [DATA_BITS-1:0]    rdata,
    output logic [1:0]              rresp,
    output logic                    rlast,
    output logic                    rvalid,
    input  logic                    rready
);
    localparam IDS = 1 << ID_BITS;
    localparam [2:0] READ_SLVERR = 1, READ_DECERR = 2, READ_SHORT = 3, READ_LONG = 4,
                     WRITE_SLVERR = 5, WRITE_DECERR = 6;
    localparam [1:0] OKAY = 0, SLVERR = 2, DECERR = 3;

    typedef struct packed {
        logic [ADDRESS_BITS-1:0] address;
        logic [8:0]              beats;
        logic [1:0]              response;
        logic [31:0]             due;
        logic [31:0]             order;
    } read_burst;

    typedef struct packed {
        logic [ID_BITS-1:0]      id;
        logic [ADDRESS_BITS-1:0] address;
        logic [7:0]              length;
        logic [1:0]              response;
    } write_burst;

    typedef struct packed {
        logic [ID_BITS-1:0]      id;
        logic [1:0]              response;
        logic [31:0]             due;
    } write_answer;

    logic [DATA_BITS-1:0] words [0:WORDS-1];

    read_burst   reads   [0:IDS-1][0:OUTSTANDING-1];
    integer      read_head [0:IDS-1];
    integer      read_count [0:IDS-1];
    write_burst  writes  [0:OUTSTANDING-1];
    integer      write_head, write_count;
    write_answer answers [0:OUTSTANDING-1];
    integer      answer_head, answer_count;

    logic [31:0] now, order, random;
    logic        loaded, dumped;

    string load_path, dump_path;
    initial begin
        for (int word = 0; word < WORDS; word++) words[word] = '0;
        if ($value$plusargs("memory=%s", load_path)) $readmemh(load_path, words);
    end

    assign backdoor_read_data = words[backdoor_index[WORD_BITS-1:0]];

    function automatic logic in_window(input logic [ADDRESS_BITS-1:0] address);
        return address >= fault_base && address < fault_limit;
    endfunction

    function automatic logic is_mapped(input logic [ADDRESS_BITS-1:0] address);
        return 64'(address) < 64'(SIZE_BYTES);
    endfunction

    function automatic logic [WORD_BITS-1:0] word_of(input logic [ADDRESS_BITS-1:0] address);
        return WORD_BITS'(address >> SIZE_LOG2);
    endfunction

    function automatic logic is_legal(
        input logic [ADDRESS_BITS-1:0] address,
        input logic [7:0] length, input logic [2:0] size, input logic [1:0] burst
    );
        logic [31:0] first = 32'(address[11:0] >> SIZE_LOG2) << SIZE_LOG2;
        return burst == 2'd1 && size == 3'(SIZE_LOG2)
            && first + (32'(length) + 1) * DATA_BYTES <= 4096;
    endfunction

    function automatic logic [31:0] at_least_one(input logic [15:0] cycles);
        return cycles == 0 ? 32'd1 : 32'(cycles);
    endfunction

    // Everything below is one process: the state is blocking, and only what leaves is registered.
    read_burst   asked, chosen;
    write_burst  written, writing;
    write_answer answered;
    integer      pick, candidate, tail;
    logic        found, have_room, complete;
    logic [15:0] breaches;
    logic [7:0]  write_beat;
    logic [ADDRESS_BITS-1:0] write_address;

    // What a master must hold until it is taken: its last offer, and whether it was turned down.
    logic [ADDRESS_BITS+10:0] read_offer, write_offer;
    logic [DATA_BITS+DATA_BYTES:0] data_offer;
    logic read_refused, write_refused, data_refused;

    // Only `count` and `head` of the queues are reset; the bursts in them need not be.
    // verilator lint_off BLKSEQ
    always @(posedge clk) begin
        if (rst) begin
            now = 0;
            order = 0;
            random = seed == 0 ? 32'h9e3779b9 : seed;
            for (int id = 0; id < IDS; id++) begin
                read_head[id] = 0;
                read_count[id] = 0;
            end
            write_head = 0;
            write_count = 0;
            write_beat = 0;
            read_refused = 0;
            write_refused = 0;
            data_refused = 0;
            answer_head = 0;
            answer_count = 0;
            arready <= 0;
            awready <= 0;
            wready <= 0;
            rvalid <= 0;
            bvalid <= 0;
            read_beats <= 0;
            write_beats <= 0;
            violations <= 0;
        end else begin
            now = now + 1;
            random = random ^ (random << 13);
            random = random ^ (random >> 17);
            random = random ^ (random << 5);
            breaches = 0;

            if (read_refused && (!arvalid || read_offer != {araddr, arlen, arsize}))
                breaches = breaches + 1;
            if (write_refused && (!awvalid || write_offer != {awaddr, awlen, awsize}))
                breaches = breaches + 1;
            if (data_refused && (!wvalid || data_offer != {wdata, wstrb, wlast}))
                breaches = breaches + 1;
            read_offer = {araddr, arlen, arsize};
            write_offer = {awaddr, awlen, awsize};
            data_offer = {wdata, wstrb, wlast};
            read_refused = arvalid && !arready;
            write_refused = awvalid && !awready;
            data_refused = wvalid && !wready;

            // Take a read request.
            if (arvalid && arready) begin
                asked.address = araddr;
                asked.beats = 9'(arlen) + 9'd1;
                asked.response = OKAY;
                asked.due = now + at_least_one(read_latency);
                asked.order = order;
                order = order + 1;
                if (in_window(araddr)) begin
                    if (fault == READ_SLVERR) asked.response = SLVERR;
                    if (fault == READ_DECERR) asked.response = DECERR;
                    if (fault == READ_SHORT && arlen != 0) asked.beats = asked.beats - 1;
                    if (fault == READ_LONG) asked.beats = asked.beats + 1;
                end
                if (!is_legal(araddr, arlen, arsize, arburst)) breaches = breaches + 1;
                tail = (read_head[arid] + read_count[arid]) % OUTSTANDING;
                reads[arid][tail] = asked;
                read_count[arid] = read_count[arid] + 1;
            end

            // Give a read beat: of the oldest burst, or of any id that has one due.
            if (!rvalid || rready) begin
                found = 0;
                pick = 0;
                for (int step = 0; step < IDS; step++) begin
                    candidate = shuffle ? (step + 32'(random[7:0])) % IDS : step;
                    if (read_count[candidate] != 0) begin
                        chosen = reads[candidate][read_head[candidate]];
                        if (shuffle) begin
                            if (!found && $signed(chosen.due - now) <= 1) begin
                                found = 1;
                                pick = candidate;
                            end
                        end else if (!found || $signed(chosen.order
                                     - reads[pick][read_head[pick]].order) < 0) begin
                            found = 1;
                            pick = candidate;
                        end
                    end
                end
                chosen = reads[pick][read_head[pick]];
                if (found && $signed(chosen.due - now) > 1) found = 0;
                if (shuffle && random[9:8] == 0) found = 0;
                if (found) begin
                    rid <= ID_BITS'(pick);
                    rdata <= is_mapped(chosen.address) ? words[word_of(chosen.address)] : '0;
                    rresp <= is_mapped(chosen.address) ? chosen.response : DECERR;
                    rlast <= chosen.beats == 1;
                    chosen.address = chosen.address + ADDRESS_BITS'(DATA_BYTES);
                    chosen.beats = chosen.beats - 1;
                    reads[pick][read_head[pick]] = chosen;
                    if (chosen.beats == 0) begin
                        read_head[pick] = (read_head[pick] + 1) % OUTSTANDING;
                        read_count[pick] = read_count[pick] - 1;
                    end
                end
                rvalid <= found;
            end
            if (rvalid && rready) read_beats <= read_beats + 1;

            // Take a write request.
            if (awvalid && awready) begin
                written.id = awid;
                written.address = awaddr;
                written.length = awlen;
                written.response = OKAY;
                if (in_window(awaddr)) begin
                    if (fault == WRITE_SLVERR) written.response = SLVERR;
                    if (fault == WRITE_DECERR) written.response = DECERR;
                end
                if (!is_mapped(awaddr)) written.response = DECERR;
                if (!is_legal(awaddr, awlen, awsize, awburst)) breaches = breaches + 1;
                writes[(write_head + write_count) % OUTSTANDING] = written;
                write_count = write_count + 1;
            end

            // Take a write beat; its request is there, because `wready` waits for one.
            if (wvalid && wready) begin
                writing = writes[write_head];
                write_address = writing.address
                    + ADDRESS_BITS'(write_beat) * ADDRESS_BITS'(DATA_BYTES);
                complete = write_beat == writing.length;
                if (wlast != complete) breaches = breaches + 1;
                if (writing.response == OKAY && is_mapped(write_address))
                    for (int lane = 0; lane < DATA_BYTES; lane++)
                        if (wstrb[lane])
                            words[word_of(write_address)][8*lane +: 8] = wdata[8*lane +: 8];
                write_beat = write_beat + 1;
                write_beats <= write_beats + 1;
                if (complete) begin
                    write_beat = 0;
                    answered.id = writing.id;
                    answered.response = writing.response;
                    answered.due = now + at_least_one(write_latency)
                        + (shuffle ? 32'(random[14:10]) : 0);
                    answers[(answer_head + answer_count) % OUTSTANDING] = answered;
                    answer_count = answer_count + 1;
                    write_head = (write_head + 1) % OUTSTANDING;
                    write_count = write_count - 1;
                end
            end

            // Give a write response.
            if (!bvalid || bready) begin
                answered = answers[answer_head];
                found = answer_count != 0 && $signed(answered.due - now) <= 1;
                if (found) begin
                    bid <= answered.id;
                    bresp <= answered.response;
                    answer_head = (answer_head + 1) % OUTSTANDING;
                    answer_count = answer_count - 1;
                end
                bvalid <= found;
            end

            // One request can come per cycle, so the counts of now hold for the next cycle.
            have_room = 1;
            for (int id = 0; id < IDS; id++) if (read_count[id] == OUTSTANDING) have_room = 0;
            arready <= have_room && !(shuffle && random[17:16] == 0);
            have_room = write_count + answer_count < OUTSTANDING;
            awready <= have_room && !(shuffle && random[18]);
            wready <= write_count != 0 && !(shuffle && random[19]);
            violations <= violations + breaches;
        end

        if (backdoor_write) words[backdoor_index[WORD_BITS-1:0]] = backdoor_write_data;
        if (load && !loaded) begin
            if (!$value$plusargs("memory=%s", load_path)) load_path = "memory.hex";
            $readmemh(load_path, words);
        end
        if (dump && !dumped) begin
            if (!$value$plusargs("memory_dump=%s", dump_path)) dump_path = "memory_dump.hex";
            $writememh(dump_path, words);
        end
        loaded = load;
        dumped = dump;
    end
endmodule
