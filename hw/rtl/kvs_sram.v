// On-chip memory: one write port, one synchronous read port, one clock.
//
// This is the module to replace by a compiled SRAM macro. It must keep these rules:
//   - read_data changes on the clock edge after read_en, and holds otherwise;
//   - a read and a write of the same address in the same cycle: the read returns the old word;
//   - write_en has one bit for each GRANULE bits of the word;
//   - contents are undefined until written; there is no reset;
//   - addresses of DEPTH and above are never used.

module kvs_sram #(
    parameter WIDTH = 8,
    parameter DEPTH = 2,
    parameter GRANULE = WIDTH
) (
    input  wire                       clk,
    input  wire [WIDTH/GRANULE-1:0]   write_en,
    input  wire [$clog2(DEPTH)-1:0]   write_addr,
    input  wire [WIDTH-1:0]           write_data,
    input  wire                       read_en,
    input  wire [$clog2(DEPTH)-1:0]   read_addr,
    output reg  [WIDTH-1:0]           read_data
);
    reg [WIDTH-1:0] words [0:DEPTH-1];

    integer granule;
    always @(posedge clk) begin
        for (granule = 0; granule < WIDTH / GRANULE; granule = granule + 1)
            if (write_en[granule])
                words[write_addr][granule*GRANULE +: GRANULE]
                    <= write_data[granule*GRANULE +: GRANULE];
        if (read_en)
            read_data <= words[read_addr];
    end
endmodule
