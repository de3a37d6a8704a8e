// Syntax highlighting by a small lexer: comments, strings, numbers, keywords, calls. It works line by line and passes the
// state at the end of a line to the next one; `lines.js` begins with the first line of a file.

const WORDS = {
  c: "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false NULL class namespace template typename public private protected virtual override new delete this using try catch throw nullptr constexpr operator friend",
  js: "async await break case catch class const continue debugger default delete do else export extends false finally for from function get if import in instanceof interface let new null of return set static super switch this throw true try type typeof undefined var void while with yield enum implements private public protected readonly declare abstract as namespace keyof",
  java: "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for goto if implements import instanceof int interface long native new null package private protected public record return sealed short static super switch synchronized this throw throws transient true false try var void volatile while fun val when object companion data open override internal suspend string namespace using async await foreach in is readonly def trait with match implicit lazy yield",
  go: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota string int bool byte rune error any",
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool str String Option Result Some None Ok Err",
  python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match case None nonlocal not or pass raise return self True try while with yield",
  ruby: "alias and begin break case class def defined? do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require attr_reader attr_accessor",
  shell: "if then else elif fi for while until do done case esac in function return local export readonly declare set unset shift exit break continue source",
  sql: "select from where insert into update delete create table index view drop alter join left right inner outer on group by order having limit offset as and or not null primary key foreign references values set distinct union all case when then else end with begin commit",
  lua: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
  data: "true false null yes no on off",
  none: "",
};
const SLASHES = { line: ["//"], block: [["/*", "*/"]], strings: ['"', "'"] };
const HASH = { line: ["#"], block: [], strings: ['"', "'"] };
const FAMILIES = {
  c: { ...SLASHES, words: "c", names: "c cpp c++ cuda objc objective-c glsl hlsl wgsl zig d verilog systemverilog proto protobuf thrift dts devicetree" },
  js: { ...SLASHES, block: [["/*", "*/"], ["`", "`", "string"]], words: "js", names: "javascript typescript tsx jsx js ts vue svelte json5 dart" },
  java: { ...SLASHES, block: [["/*", "*/"], ['"""', '"""', "string"]], words: "java", names: "java kotlin scala csharp c-sharp cs groovy swift php" },
  go: { ...SLASHES, block: [["/*", "*/"], ["`", "`", "string"]], words: "go", names: "go" },
  rust: { ...SLASHES, strings: ['"'], words: "rust", names: "rust rs" },
  python: { ...HASH, block: [['"""', '"""', "string"], ["'''", "'''", "string"]], prefixes: true, words: "python", names: "python py starlark bazel cython" },
  ruby: { ...HASH, words: "ruby", names: "ruby rb elixir crystal perl r julia nim" },
  shell: { ...HASH, words: "shell", names: "bash shell sh console zsh fish make makefile dockerfile docker cmake powershell awk" },
  data: { ...HASH, words: "data", names: "yaml yml toml ini json hcl terraform nix gitignore properties" },
  sql: { line: ["--"], block: [["/*", "*/"]], strings: ['"', "'"], words: "sql", names: "sql" },
  lua: { line: ["--"], block: [["--[[", "]]"], ["[[", "]]", "string"]], strings: ['"', "'"], words: "lua", names: "lua haskell elm ada vhdl" },
  lisp: { line: [";"], block: [], strings: ['"'], words: "none", names: "clojure scheme commonlisp lisp elisp racket asm" },
  markup: { lex: lexMarkup, words: "none", names: "html xml svg" },
  prose: { lex: lexProse, words: "none", names: "markdown md rst asciidoc" },
  css: { line: [], block: [["/*", "*/"]], strings: ['"', "'"], words: "none", names: "css scss less" },
};
const BY_NAME = new Map(Object.values(FAMILIES).flatMap((one) => one.names.split(" ").map((name) => [name, one])));
for (const family of Object.values(FAMILIES)) family.keywords = new Set(WORDS[family.words].split(" "));
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*[?!]?/uy;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)[a-zA-Z]*/y;
const WORD_END = /[\p{L}\p{N}_]/u;
const TAG = /<[/!?]?[\p{L}][\p{L}\p{N}_:.-]*/uy;
const IN_TAG = /"[^"]*"?|'[^']*'?|[\p{L}_][\p{L}\p{N}_:.-]*|[/?]?>/uy;
const FENCE = /^[\s>]*(`{3,}|~{3,})\s*([\w+#-]*)/;
const INLINE = /(`+)[^`]*\1|\*\*[^*]+\*\*|\]\([^)\s]*\)|<!--.*?-->|^\s*(?:[-*+>]|\d{1,4}[.)])(?=\s)/g;
const INLINE_KINDS = { "`": "string", "*": "keyword", "]": "call", "<": "comment" };
const MOST_COLOURED = 2000;

/** Return the lexer for a language's name, or null. */
export function lexerFor(language) {
  return BY_NAME.get(language) ?? null;
}

/** Return the tokens of each line of a whole file. */
export function lexAll(family, lines) {
  let state = null;
  return lines.map((text) => {
    const line = lex(family, text, state);
    state = line.state;
    return line.tokens;
  });
}

/** Like `lex`, for HTML and XML: only what is in a tag has colours, and a text's quotes open nothing. */
function lexMarkup(text, before) {
  const tokens = [];
  const length = Math.min(text.length, MOST_COLOURED);
  let state = before;
  let at = 0;
  while (at < length) {
    if (state === "comment") {
      const end = text.indexOf("-->", at);
      const stop = end < 0 ? text.length : end + 3;
      tokens.push([at, stop, "comment"]);
      if (end >= 0) state = null;
      at = stop;
    } else if (state === "tag") {
      IN_TAG.lastIndex = at;
      const piece = IN_TAG.exec(text)?.[0] ?? "";
      if (piece.endsWith(">") && !/^["']/.test(piece)) state = null;
      else if (piece) tokens.push([at, at + piece.length, /^["']/.test(piece) ? "string" : "number"]);
      at += piece.length || 1;
    } else if (text.startsWith("<!--", at)) {
      state = "comment";
    } else {
      TAG.lastIndex = at;
      const name = TAG.exec(text)?.[0] ?? "";
      if (name) {
        tokens.push([at, at + name.length, "keyword"]);
        state = "tag";
      }
      at += name.length || 1;
    }
  }
  return { tokens, state };
}

/** Like `lex`, for Markdown: headings, code, emphasis, targets of links; a fence's code has the colours of its language. */
function lexProse(text, state) {
  const fence = FENCE.exec(text);
  if (state) {
    if (fence?.[1].startsWith(state.fence) && !fence[2]) return { tokens: [[0, text.length, "comment"]], state: null };
    if (!state.family) return { tokens: [], state };
    const inner = lex(state.family, text, state.inner);
    return { tokens: inner.tokens, state: { ...state, inner: inner.state } };
  }
  if (fence) return { tokens: [[0, text.length, "comment"]], state: { fence: fence[1], family: lexerFor(fence[2].toLowerCase()), inner: null } };
  if (/^#{1,6}\s/.test(text)) return { tokens: [[0, text.length, "keyword"]], state: null };
  const tokens = [];
  for (const piece of text.slice(0, MOST_COLOURED).matchAll(INLINE)) tokens.push([piece.index, piece.index + piece[0].length, INLINE_KINDS[piece[0][0]] ?? "number"]);
  return { tokens, state: null };
}

/** Return a line's tokens, [start, end, class], and the state at the start of the next line. */
export function lex(family, text, state) {
  if (family.lex) return family.lex(text, state);
  const tokens = [];
  const length = Math.min(text.length, MOST_COLOURED);
  let at = 0;
  while (at < length) {
    if (state) {
      const end = text.indexOf(state.end, at);
      const stop = end < 0 ? text.length : end + state.end.length;
      tokens.push([at, stop, state.kind]);
      if (end < 0) return { tokens, state };
      state = null;
      at = stop;
      continue;
    }
    const block = family.block.find(([begin]) => text.startsWith(begin, at));
    if (block) {
      const [begin, end, kind = "comment"] = block;
      const close = text.indexOf(end, at + begin.length);
      const stop = close < 0 ? text.length : close + end.length;
      tokens.push([at, stop, kind]);
      if (close < 0) return { tokens, state: { end, kind } };
      at = stop;
      continue;
    }
    const lead = family.line.find((one) => text.startsWith(one, at));
    if (lead && (lead !== "#" || at === 0 || /[\s;({]/.test(text[at - 1]))) {
      tokens.push([at, text.length, "comment"]);
      return { tokens, state: null };
    }
    const character = text[at];
    // After a letter it is an apostrophe, or a digit separator; only a prefix such as r'' may stand there.
    const opens = family.prefixes || character !== "'" || at === 0 || !WORD_END.test(text[at - 1]);
    if (opens && family.strings.includes(character)) {
      let end = at + 1;
      while (end < text.length && text[end] !== character) end += text[end] === "\\" ? 2 : 1;
      end = Math.min(end + 1, text.length);
      tokens.push([at, end, "string"]);
      at = end;
      continue;
    }
    WORD.lastIndex = NUMBER.lastIndex = at;
    const word = WORD.exec(text);
    const number = word ? null : NUMBER.exec(text);
    if (word) {
      const end = at + word[0].length;
      if (family.keywords.has(word[0]) || (family.words === "sql" && family.keywords.has(word[0].toLowerCase()))) tokens.push([at, end, "keyword"]);
      else if (text[end] === "(") tokens.push([at, end, "call"]);
      at = end;
    } else if (number) {
      tokens.push([at, at + number[0].length, "number"]);
      at += number[0].length;
    } else {
      at += 1;
    }
  }
  return { tokens, state };
}

/** Return a line's text as highlighted nodes, with `spans` marked: sorted [start, end, class]. */
export function paint(text, tokens, spans = []) {
  const cuts = new Set([0, text.length]);
  for (const [start, end] of [...tokens, ...spans]) cuts.add(Math.min(start, text.length)).add(Math.min(end, text.length));
  const edges = [...cuts].sort((one, other) => one - other);
  const nodes = [];
  let token = 0;
  for (let at = 0; at + 1 < edges.length; at += 1) {
    const [start, end] = [edges[at], edges[at + 1]];
    while (token < tokens.length && tokens[token][1] <= start) token += 1;
    const kind = token < tokens.length && tokens[token][0] <= start ? tokens[token][2] : "";
    const span = spans.find(([from, to]) => from <= start && end <= to);
    if (!kind && !span) {
      nodes.push(document.createTextNode(text.slice(start, end)));
      continue;
    }
    const node = document.createElement(span ? "mark" : "span");
    node.className = [kind && `t-${kind}`, span?.[2]].filter(Boolean).join(" ");
    node.textContent = text.slice(start, end);
    nodes.push(node);
  }
  return nodes;
}
