pragma solidity ^0.8.0;
import "./Base.sol";
import {Owned as O} from "./Owned.sol";

uint constant LIMIT = 10;

/// @title Keeps things.
contract Store is Base, O(1) {
    using SafeMath for uint256;
    struct Item { uint id; address owner; }
    enum Color { Red, Green }
    event Stored(address indexed who, uint id);
    error Denied(address who);
    mapping(address => Item) public items;
    uint256 private total;
    modifier onlyOwner() { require(msg.sender == owner()); _; }
    constructor(uint x) { total = x; }
    function read(uint key) public view onlyOwner returns (uint) { return helper(key); }
    receive() external payable {}
}
interface Named is Base { function name() external view returns (string memory); }
library SafeMath { function add(uint a, uint b) internal pure returns (uint) { return a + b; } }
abstract contract Other {}
function helper(uint x) pure returns (uint) { return x; }
