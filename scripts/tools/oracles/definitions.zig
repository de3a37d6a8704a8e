// Prints the definitions in the files listed on stdin, by Zig's own parser, as JSON lines like those of ctags: functions,
// fields of containers, errors, and constants and variables outside of functions.
//     zig run definitions.zig      (PyPI: ziglang==0.13.0)
const std = @import("std");
const Ast = std.zig.Ast;

fn tell(out: anytype, path: []const u8, tree: Ast, token: Ast.TokenIndex, kind: []const u8) !void {
    const line = std.mem.count(u8, tree.source[0..tree.tokens.items(.start)[token]], "\n") + 1;
    const raw = tree.tokenSlice(token);
    const name = if (std.mem.startsWith(u8, raw, "@\"")) raw[2 .. raw.len - 1] else raw;
    try std.json.stringify(.{ ._type = "tag", .path = path, .line = line, .name = name, .kind = kind }, .{}, out);
    try out.writeByte('\n');
}

fn tellFile(arena: std.mem.Allocator, out: anytype, path: []const u8) !void {
    const file = try std.fs.openFileAbsolute(path, .{});
    defer file.close();
    const source = try file.readToEndAllocOptions(arena, 1 << 26, null, 1, 0);
    const tree = try Ast.parse(arena, source, .zig);
    if (tree.errors.len > 0) {
        try std.json.stringify(.{ ._type = "unread", .path = path }, .{}, out);
        return out.writeByte('\n');
    }
    const starts = tree.tokens.items(.start);
    // Variables inside a function's body are local.
    var bodies = std.ArrayList([2]u32).init(arena);
    var types = std.ArrayList([2]u32).init(arena);
    for (tree.nodes.items(.tag), 0..) |tag, index| {
        const node: Ast.Node.Index = @intCast(index);
        const span = [2]u32{ starts[tree.firstToken(node)], starts[tree.lastToken(node)] };
        if (tag == .fn_decl or tag == .test_decl) try bodies.append(span);
        var buffer: [2]Ast.Node.Index = undefined;
        if (node != 0 and tree.fullContainerDecl(&buffer, node) != null) try types.append(span);
    }
    for (tree.nodes.items(.tag), 0..) |tag, index| {
        const node: Ast.Node.Index = @intCast(index);
        var buffer: [1]Ast.Node.Index = undefined;
        if (tree.fullVarDecl(node)) |variable| {
            const token = variable.ast.mut_token + 1;
            var inner: u32 = 0; // the innermost function or type around it, by where that begins
            var local = false;
            for (bodies.items) |span| if (span[0] <= starts[token] and starts[token] <= span[1] and span[0] >= inner) {
                inner = span[0];
                local = true;
            };
            for (types.items) |span| if (span[0] <= starts[token] and starts[token] <= span[1] and span[0] >= inner) {
                inner = span[0];
                local = false;
            };
            if (!local) try tell(out, path, tree, token, "variable");
        } else if (tree.fullContainerField(node)) |field| {
            if (!field.ast.tuple_like) try tell(out, path, tree, field.ast.main_token, "field");
        } else if (tag == .error_set_decl) {
            var token = tree.nodes.items(.main_token)[node] + 2;
            while (token < tree.nodes.items(.data)[node].rhs) : (token += 1) {
                if (tree.tokens.items(.tag)[token] == .identifier) try tell(out, path, tree, token, "error");
            }
        } else if (tag != .fn_decl) {
            if (tree.fullFnProto(&buffer, node)) |function| {
                if (function.name_token) |name| try tell(out, path, tree, name, "function");
            }
        }
    }
}

pub fn main() !void {
    var arena = std.heap.ArenaAllocator.init(std.heap.page_allocator);
    var buffered = std.io.bufferedWriter(std.io.getStdOut().writer());
    var line: [4096]u8 = undefined;
    while (try std.io.getStdIn().reader().readUntilDelimiterOrEof(&line, '\n')) |path| {
        try tellFile(arena.allocator(), buffered.writer(), path);
        _ = arena.reset(.retain_capacity);
    }
    try buffered.flush();
}
