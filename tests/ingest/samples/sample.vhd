-- Symbols by patterns: no grammar of VHDL is installed.
library ieee;
use ieee.std_logic_1164.all;

package shop is
  constant Limit : integer := 10;
  type state_t is (idle, busy);
  type item_t is record
    price, cost : integer;
    sold        : std_logic;
  end record;
  subtype name_t is string(1 to 10);
  alias price_t is integer;
  function price(name : string) return integer;
  function "+"(a, b : item_t) return item_t;
  component store
    port (clk : in std_logic);
  end component;
end package;

package body shop is
  -- function commented
  impure function price(name : string) return integer is
  begin
    return 1;
  end function;
  PROCEDURE add(a : in integer) IS
  BEGIN
  END PROCEDURE;
end package body;

entity counter is
  generic (width : integer := 8);
  port (clk : in std_logic);
end entity;

architecture rtl of counter is
  signal count : integer;
begin
  counting : process (clk)
  begin
  end process;
end architecture;
