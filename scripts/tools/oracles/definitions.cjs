// Prints the definitions in the files listed on stdin, by a language's own parser, as JSON lines like those of ctags.
//     NODE_PATH=FOLDER_WITH_THE_PARSERS node definitions.cjs LANGUAGE
// npm: typescript@5 @vue/compiler-sfc svelte @astrojs/compiler parse5 postcss postcss-scss postcss-selector-parser yaml
// jsonc-parser toml-eslint-parser@0.10 graphql @solidity-parser/parser scalameta-parsers
// A file that the parser rejects is reported as {"_type": "unread", "path": …}.
const fs = require("node:fs");
const { pathToFileURL } = require("node:url");

const found = [];
const tell = (line, name, kind) => found.push({ _type: "tag", line, name, kind });

/** Return a function from an offset to its line, from 1. */
function lineCounter(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

// JavaScript and TypeScript: what is declared, but for the variables of functions that hold no function or class.

function readScript(text, grammar, line) {
  const ts = require("typescript");
  const kind = { js: ts.ScriptKind.JSX, ts: ts.ScriptKind.TS, tsx: ts.ScriptKind.TSX }[grammar];
  const source = ts.createSourceFile(`a.${grammar}`, text, ts.ScriptTarget.Latest, true, kind);
  if (source.parseDiagnostics.length) throw new Error(source.parseDiagnostics[0].messageText);
  const holds = (value) => value && (ts.isFunctionExpression(value) || ts.isArrowFunction(value) || ts.isClassExpression(value));
  const named = (node, what) => node.name && !ts.isComputedPropertyName(node.name) && tell(line(node.name.getStart()), node.name.text, what);
  const visit = (node, local) => {
    if (ts.isFunctionDeclaration(node)) named(node, "function");
    else if (ts.isClassDeclaration(node)) named(node, "class");
    else if (ts.isInterfaceDeclaration(node)) named(node, "interface");
    else if (ts.isTypeAliasDeclaration(node)) named(node, "type");
    else if (ts.isEnumDeclaration(node)) named(node, "enum");
    else if (ts.isEnumMember(node)) named(node, "enumerator");
    else if (ts.isConstructorDeclaration(node)) tell(line(node.getStart()), "constructor", "constructor");
    else if (ts.isMethodDeclaration(node) || ts.isAccessor(node) || ts.isMethodSignature(node)) named(node, "method");
    else if (ts.isPropertyDeclaration(node) || ts.isPropertySignature(node)) named(node, "field");
    else if (ts.isPropertyAssignment(node) && holds(node.initializer)) named(node, "method");
    else if (ts.isVariableDeclaration(node) && !ts.isCatchClause(node.parent)) {
      const patterns = [node.name];
      while (patterns.length) {
        const name = patterns.pop();
        if (!ts.isIdentifier(name)) patterns.push(...name.elements.flatMap((one) => one.name ?? []));
        else if (!local || holds(node.initializer)) tell(line(name.getStart()), name.text, "variable");
      }
    } else if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken && holds(node.right)) {
      const name = ts.isPropertyAccessExpression(node.left) ? node.left.name : node.left;
      if (ts.isIdentifier(name)) tell(line(name.getStart()), name.text, "function");
    }
    ts.forEachChild(node, (child) => visit(child, local || ts.isFunctionLike(node)));
  };
  visit(source, false);
}

/** Read a part of a text at its own lines. */
function readPart(text, start, end, typed) {
  const line = lineCounter(text);
  readScript(text.slice(start, end), typed ? (/tsx/.test(typed) ? "tsx" : "ts") : "js", (offset) => line(start + offset));
}

const isCode = (type) => !type || /^(module|text\/(java|type)script|application\/javascript)$/.test(type);

function readVue(text) {
  const { descriptor, errors } = require("@vue/compiler-sfc").parse(text);
  if (errors.length) throw errors[0];
  for (const block of [descriptor.script, descriptor.scriptSetup]) {
    if (block) readPart(text, block.loc.start.offset, block.loc.end.offset, block.lang);
  }
}

function readSvelte(text) {
  const tree = require("svelte/compiler").parse(text, { modern: true });
  for (const script of [tree.instance, tree.module]) {
    const typed = script?.attributes.some(({ name, value }) => name === "lang" && value[0].data === "ts");
    if (script) readPart(text, script.content.start, script.content.end, typed && "ts");
  }
}

async function readAstro(text) {
  const { parse } = await import(pathToFileURL(require.resolve("@astrojs/compiler")));
  const { ast, diagnostics } = await parse(text, { position: true });
  if (diagnostics.some(({ severity }) => severity === 1)) throw new Error(diagnostics[0].text);
  const bytes = Buffer.from(text); // positions are of bytes
  const visit = (node) => {
    const isScript = node.type === "element" && node.name === "script" && !node.attributes.some(({ name }) => name === "type");
    for (const part of node.type === "frontmatter" ? [node] : isScript ? node.children : []) {
      const start = text.indexOf(part.value, bytes.subarray(0, part.position.start.offset).toString().length);
      readPart(text, start, start + part.value.length, "ts");
    }
    for (const child of node.children ?? []) visit(child);
  };
  visit(ast);
}

// HTML: elements with an id, headings by their first words, and what scripts declare.

function readHtml(text) {
  const { parse, defaultTreeAdapter: tree } = require("parse5");
  const line = lineCounter(text);
  const words = (node) => (tree.isTextNode(node) ? [node] : (node.childNodes ?? []).flatMap(words));
  const visit = (node) => {
    const place = node.sourceCodeLocation;
    const attribute = (name) => node.attrs?.find((one) => one.name === name)?.value;
    if (place && attribute("id")?.trim()) tell((place.attrs ?? place.startTag.attrs).id.startLine, attribute("id"), "id");
    if (place && /^h[1-6]$/.test(node.tagName ?? "")) {
      const first = words(node).find((one) => one.value.trim());
      if (first) {
        const blank = first.value.length - first.value.trimStart().length;
        tell(line(first.sourceCodeLocation.startOffset + blank), first.value.trim(), "heading");
      }
    }
    if (place && node.tagName === "script" && isCode(attribute("type")) && node.childNodes.length) {
      const { startOffset, endOffset } = node.childNodes[0].sourceCodeLocation;
      readPart(text, startOffset, endOffset, attribute("lang"));
    }
    for (const child of [...(node.childNodes ?? []), ...(node.content ? [node.content] : [])]) visit(child);
  };
  visit(parse(text, { sourceCodeLocationInfo: true, scriptingEnabled: false }));
}

// Style sheets: classes and ids that a rule is for, custom properties, keyframes; of SCSS what can be called or extended,
// and the variables of the file.

function readStyles(text, syntax) {
  const selectors = require("postcss-selector-parser");
  const line = lineCounter(text);
  const root = syntax === "scss" ? require("postcss-scss").parse(text) : require("postcss").parse(text);
  root.walk((node) => {
    const start = node.source.start.offset;
    if (node.type === "rule") {
      const raw = node.raws.selector?.raw ?? node.selector;
      selectors((list) => {
        list.walk((one) => {
          if (one.type !== "class" && one.type !== "id") return;
          // A name with an interpolation, or behind ``&``, is only known once it is compiled.
          if (!/[#&{}$]/.test(one.value)) tell(line(start + one.sourceIndex), one.value, one.type);
        });
      }).processSync(raw);
      for (const name of raw.matchAll(/%([\w-]+)/g)) tell(line(start + name.index), name[1], "placeholder");
    } else if (node.type === "decl" && node.prop.startsWith("--") && !node.prop.includes("#{")) tell(line(start), node.prop, "property");
    else if (node.type === "decl" && node.prop.startsWith("$") && node.parent.type === "root") tell(line(start), node.prop.slice(1), "variable");
    else if (node.type === "atrule") {
      const name = /^[\w-]+/.exec(node.params)?.[0];
      if (name && /^(-\w+-)?keyframes$|^mixin$|^function$/.test(node.name)) tell(line(start), name, node.name);
    }
  });
}

// Data: keys of an object down to a level; what is below is data.

function readYaml(text) {
  const { parseAllDocuments, isMap, isScalar } = require("yaml");
  const line = lineCounter(text);
  const visit = (node, level) => {
    if (!isMap(node) || node.flow) return;
    for (const { key, value } of node.items) {
      if (isScalar(key)) tell(line(key.range[0]), key.source ?? String(key.value), "key");
      if (level < 3) visit(value, level + 1);
    }
  };
  for (const document of parseAllDocuments(text, { strict: false, uniqueKeys: false })) {
    if (document.errors.length) throw document.errors[0];
    visit(document.contents, 1);
  }
}

function readJson(text) {
  const { parseTree } = require("jsonc-parser");
  const line = lineCounter(text);
  const errors = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (errors.length) throw new Error("no JSON");
  for (const outer of root?.type === "object" ? root.children : []) {
    for (const { children } of [outer, ...(outer.children[1]?.type === "object" ? outer.children[1].children : [])]) {
      if (children[0].value) tell(line(children[0].offset), text.slice(children[0].offset + 1, children[0].offset + children[0].length - 1), "key");
    }
  }
}

function readToml(text) {
  const { parseTOML } = require("toml-eslint-parser");
  const told = (key, kind) => tell(key.loc.start.line, key.keys.map((one) => one.name ?? one.value).join("."), kind);
  const visit = (node) => {
    if (node.type === "TOMLTable") told(node.key, "table");
    for (const one of node.body) {
      if (one.type === "TOMLKeyValue") told(one.key, "key");
      else visit(one);
    }
  };
  for (const one of parseTOML(text).body) visit(one);
}

// Languages whose parser names each kind of definition.

function readGraphql(text) {
  const { parse, visit } = require("graphql");
  const named = /(Definition|Extension)$/;
  const isArgument = (node, parents) => node.kind === "InputValueDefinition" && /^(Field|Directive)Def/.test(parents.at(-1)?.kind ?? parents.at(-2)?.kind);
  visit(parse(text), {
    enter(node, _key, _parent, _path, ancestors) {
      const parents = ancestors.filter((one) => !Array.isArray(one));
      if (named.test(node.kind) && node.name && node.kind !== "VariableDefinition" && !isArgument(node, parents)) {
        tell(node.name.loc.startToken.line, node.name.value, node.kind);
      }
    },
  });
}

function readSolidity(text) {
  const { parse, visit } = require("@solidity-parser/parser");
  const kinds = "ContractDefinition StructDefinition EnumDefinition EnumValue EventDefinition CustomErrorDefinition TypeDefinition ModifierDefinition FileLevelConstant".split(" ");
  const line = lineCounter(text);
  const at = (node, name) => {
    const [start, end] = node.range;
    tell(line(start + Math.max(0, text.slice(start, end + 1).search(new RegExp(`\\b${name.replace(/\$/g, "\\$")}\\b`)))), name, node.type);
  };
  const told = (node) => node.name && at(node, node.name);
  visit(parse(text, { range: true }), {
    ...Object.fromEntries(kinds.map((kind) => [kind, told])),
    FunctionDefinition(node) {
      const special = ["isConstructor", "isFallback", "isReceiveEther"].findIndex((name) => node[name]);
      at(node, special < 0 ? node.name : ["constructor", "fallback", "receive"][special]);
    },
    StructDefinition(node) {
      told(node);
      node.members.forEach((member) => at(member, member.name));
    },
    StateVariableDeclaration: (node) => node.variables.forEach((variable) => at(variable, variable.name)),
  });
}

function readScala(text) {
  const root = require("scalameta-parsers").parseSource(text);
  if (root.error) throw new Error(root.error);
  const line = lineCounter(text);
  const named = (node, kind) => tell(line(node.pos.start), node.value, kind);
  const visit = (node, local) => {
    const { type } = node;
    const what = /^(Defn|Decl)\.(\w+)$/.exec(type)?.[2];
    if (type === "Pkg") tell(line(node.ref.pos.start), text.slice(node.ref.pos.start, node.ref.pos.end), "package");
    else if (type === "Pkg.Object" || (what && node.name?.value)) named(node.name, what ?? "package");
    else if (what === "Val" || what === "Var") {
      const patterns = local ? [] : [...node.pats];
      while (patterns.length) {
        const one = patterns.pop();
        if (one.type === "Pat.Var") named(one.name, what);
        else patterns.push(...(one.args ?? []), ...(one.argClause?.values ?? []), ...(one.lhs ? [one.lhs] : []));
      }
    }
    if (type === "Defn.Class") {
      for (const one of node.ctor.paramClauses.flatMap((clause) => clause.values)) named(one.name, "parameter");
    }
    const isBody = local || type === "Term.Function" || type === "Defn.Def" || type === "Term.PartialFunction" || type === "Term.Block";
    const isType = type === "Template";
    for (const child of Object.values(node).flat()) {
      if (child && typeof child === "object" && child.type) visit(child, isBody && !isType);
    }
  };
  visit(root, false);
}

const readers = {
  javascript: (text) => readScript(text, "js", lineCounter(text)),
  typescript: (text) => readScript(text, "ts", lineCounter(text)),
  tsx: (text) => readScript(text, "tsx", lineCounter(text)),
  vue: readVue, svelte: readSvelte, astro: readAstro, html: readHtml,
  css: (text) => readStyles(text, "css"),
  scss: (text) => readStyles(text, "scss"),
  yaml: readYaml, json: readJson, toml: readToml, graphql: readGraphql, solidity: readSolidity, scala: readScala,
};

(async () => {
  for (const path of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const text = fs.readFileSync(path, "utf8").replace(/^\uFEFF/, "");
    found.length = 0;
    try {
      await readers[process.argv[2]](text.replace(/\r\n/g, " \n"));
    } catch {
      found.splice(0, found.length, { _type: "unread" });
    }
    process.stdout.write(found.map((one) => `${JSON.stringify({ ...one, path })}\n`).join(""));
  }
})();
