// Which classes of a folder TypeScript's checker takes for objects of which interfaces with methods, as JSON lines like
// those of go/implements.go. Type parameters are taken for `any`; what is not exported, or local, is not judged.
//     NODE_PATH=FOLDER_WITH_TYPESCRIPT node implements.cjs ROOT
const { files, options, path, place, print, root, ts } = require("./folder.cjs");

// An additional file names each type with its parameters, so that the checker instantiates the types.
const found = [];
const lines = [];
for (const file of files) {
  print({ read: path.relative(root, file) });
  const source = ts.createSourceFile(file, ts.sys.readFile(file), ts.ScriptTarget.Latest, true);
  const visit = (node) => {
    ts.forEachChild(node, visit);
    const isClass = ts.isClassLike(node);
    if (!(isClass || ts.isInterfaceDeclaration(node)) || !node.name) return;
    const words = (node.modifiers || []).map((one) => one.kind);
    const isExported = words.includes(ts.SyntaxKind.ExportKeyword) && !words.includes(ts.SyntaxKind.DefaultKeyword);
    if (!isExported || node.parent !== source) return print({ unjudged: place(node.name) });
    const given = (node.typeParameters || []).map(() => "any").join(", ");
    const from = file.replace(/\.m?tsx?$/, file.endsWith(".mts") ? ".mjs" : "");
    lines.push(`export type T${found.length} = import(${JSON.stringify(from)}).${node.name.text}${given && `<${given}>`};`);
    found.push({ node, isClass, name: node.name.text, place: place(node.name) });
  };
  visit(source);
}
const added = path.join(root, "zz_types_of_this_oracle.ts");
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists, readFile } = host;
host.fileExists = (file) => file === added || fileExists.call(host, file);
host.readFile = (file) => (file === added ? lines.join("\n") : readFile.call(host, file));
host.getSourceFile = (file, ...rest) =>
  file === added ? ts.createSourceFile(file, lines.join("\n"), ...rest) : getSourceFile.call(host, file, ...rest);
const program = ts.createProgram([...files, added], options, host);
const checker = program.getTypeChecker();
program.getSourceFile(added).statements.forEach((alias, index) => {
  found[index].type = checker.getTypeFromTypeNode(alias.type);
});
// Interfaces with only optional members are skipped: nearly every class implements them.
const isMethod = (member) =>
  !(member.flags & ts.SymbolFlags.Optional) && (member.declarations || []).some(ts.isMethodSignature);
const known = found.filter((one) => {
  const isKnown = !(one.type.flags & ts.TypeFlags.Any);
  if (!isKnown) print({ unjudged: one.place });
  return isKnown;
});
const interfaces = known.filter((one) => !one.isClass && checker.getPropertiesOfType(one.type).some(isMethod));
for (const one of interfaces) {
  const row = { interface: one.place, name: one.name, methods: checker.getPropertiesOfType(one.type).filter(isMethod).length };
  print(row);
  for (const other of known)
    if (other.isClass && checker.isTypeAssignableTo(other.type, one.type))
      print({ ...row, type: other.place, type_name: other.name });
}
