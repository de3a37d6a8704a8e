// Prints what each name in a folder refers to, by TypeScript's checker, as JSON lines:
// {"use": [file, line], "target": [file, line], "name": …, "kind": …, "call": …}.
//     NODE_PATH=FOLDER_WITH_TYPESCRIPT node uses.cjs ROOT
const { files, options, path, place, print, root, skipped, ts } = require("./folder.cjs");

const program = ts.createProgram(files, options);
const checker = program.getTypeChecker();

function kindOf(node) {
  if (ts.isFunctionDeclaration(node)) return "function";
  if (ts.isVariableDeclaration(node)) {
    const value = node.initializer;
    return value && (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) ? "function" : "constant";
  }
  if (ts.isMethodDeclaration(node) || ts.isMethodSignature(node)) return "method";
  if (ts.isPropertyDeclaration(node) || ts.isPropertySignature(node) || ts.isGetAccessor(node)) return "property";
  if (ts.isClassDeclaration(node)) return "class";
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node)) return "type";
  return "";
}

const isLocal = (node) => {
  for (let at = node.parent; at; at = at.parent) if (ts.isFunctionLike(at)) return true;
  return false;
};

function visit(node) {
  if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) report(node);
  ts.forEachChild(node, visit);
}

function report(node) {
  const parent = node.parent;
  if (parent.name === node && !ts.isPropertyAccessExpression(parent) && !ts.isJsxAttribute(parent)) return;
  if (ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent) || ts.isImportClause(parent)) return;
  let symbol = checker.getSymbolAtLocation(node);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declared = (symbol && symbol.declarations) || [];
  const written = declared.filter((one) => one.body);
  const callee = ts.isPropertyAccessExpression(parent) && parent.name === node ? parent : node;
  const around = callee.parent;
  const isCall =
    ((ts.isCallExpression(around) || ts.isNewExpression(around)) && around.expression === callee) ||
    ts.isJsxOpeningElement(around) || ts.isJsxSelfClosingElement(around);
  for (const one of written.length ? written : declared) {
    const kind = kindOf(one);
    const file = path.relative(root, one.getSourceFile().fileName);
    if (!kind || !one.name || file.startsWith("..") || skipped.test(file)) continue;
    // Local definitions are not targets themselves, but chains lead through them.
    const told = isLocal(one) ? "local " + kind : kind;
    const container = kind === "method" && one.parent.name ? one.parent.name.text : "";
    const row = { use: place(node), target: place(one.name), name: one.name.text, container, kind: told, call: isCall };
    print(row);
  }
}

for (const source of program.getSourceFiles())
  if (files.includes(source.fileName)) visit(source);
