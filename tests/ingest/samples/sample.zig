const std = @import("std");
const mem = std.mem;

pub const limit: usize = 10;
var counter: u32 = 0;

/// Keeps things.
pub const Store = struct {
    name: []const u8,
    size: u32 = 0,

    pub fn init(name: []const u8) Store {
        return .{ .name = name };
    }

    fn read(self: *Store, key: u8) !u8 {
        const local = helper(key);
        return mem.eql(self.name, local);
    }
};

const Color = enum { red, green };
const Value = union(enum) { int: i32, none };
const Failure = error{ Missing, Denied };
fn helper(x: u8) u8 { return x; }
extern fn c_call(x: c_int) void;
test "reads" { try std.testing.expect(helper(1) == 1); }
