// A folder as TypeScript's compiler is to read it: for the programs beside this one.
//     NODE_PATH=FOLDER_WITH_TYPESCRIPT node uses.cjs ROOT          … node implements.cjs ROOT
const path = require("node:path");
const ts = require("typescript");

const root = path.resolve(process.argv[2]);
const skipped = /(^|\/)(node_modules|dist|\.git)(\/|$)/;
const files = ts.sys
  .readDirectory(root, [".ts", ".tsx", ".mts"], ["**/node_modules"], undefined)
  .filter((file) => !skipped.test(path.relative(root, file)) && !file.endsWith(".d.ts"));
const config = ts.findConfigFile(root, ts.sys.fileExists);
const options = {
  ...(config
    ? ts.parseJsonConfigFileContent(ts.readConfigFile(config, ts.sys.readFile).config, ts.sys, path.dirname(config)).options
    : {}),
  noEmit: true, skipLibCheck: true, allowJs: false, types: [],
};

const place = (node) => {
  const source = node.getSourceFile();
  return [path.relative(root, source.fileName), source.getLineAndCharacterOfPosition(node.getStart()).line + 1];
};
const print = (row) => console.log(JSON.stringify(row));

module.exports = { files, options, path, place, print, root, skipped, ts };
