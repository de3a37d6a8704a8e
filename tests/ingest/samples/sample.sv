// Symbols by patterns: no grammar of SystemVerilog is installed.
`define WIDTH 8
package shop_pkg;
  typedef enum logic [1:0] { IDLE, BUSY = 2 } state_e;
  typedef struct packed {
    logic [7:0] price;
    logic       sold;
  } item_t;
  parameter int Limit = 10;
  localparam A = 1,
             B = 2;
endpackage

interface shop_if import shop_pkg::*; (input logic clk);
endinterface

class store extends base;
  rand int count;
  constraint few_c { count < 10; }
  extern virtual function int price(string name);
  static task run();
  endtask
endclass

function int store::price(string name);
  return helper(name);
endfunction

module shop #(
  parameter int Depth = 4
) (
  input logic clk
);
  // function commented();
  function automatic [7:0] helper;
    input [7:0] x;
    helper = x;
  endfunction
endmodule
