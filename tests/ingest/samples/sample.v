// Symbols by patterns: no grammar of Verilog is installed.
`timescale 1ns / 1ps
`define LIMIT 10
module shop #(parameter WIDTH = 8, parameter DEPTH = 2) (
  input wire clk,
  output reg [WIDTH-1:0] price
);
  localparam [1:0] STATE_IDLE = 2'd0, STATE_BUSY = 2'd1;
  localparam
    FIRST = 1,
    LAST = 2;
  function [7:0] twice(input [7:0] x);
    twice = x + x;
  endfunction
  task run;
    input [7:0] count;
    begin end
  endtask
  primitive_store u_store (.clk(clk));
endmodule
