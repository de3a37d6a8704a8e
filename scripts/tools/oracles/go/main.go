// What go/types says of a module, as JSON lines: what each of its names means, or which types have what interfaces ask
// for. Run it in the module's own folder, in which what it imports is found:
//
//	go run ORACLES/go/*.go uses ROOT          go run ORACLES/go/*.go implements ROOT
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

var (
	fset    = token.NewFileSet()
	root    string
	module  string
	parsed  = map[string][]*ast.File{} // by folder; those of tests beside the package's own
	checked = map[string]*types.Package{}
	library = importer.ForCompiler(fset, "source", nil)
	out     = json.NewEncoder(os.Stdout)
)

func main() {
	tell := map[string]func(){"uses": tellUses, "implements": tellImplements}
	if len(os.Args) != 3 || tell[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ORACLES/go/*.go uses|implements ROOT")
		os.Exit(2)
	}
	root, _ = filepath.Abs(os.Args[2])
	load()
	tell[os.Args[1]]()
}

// load reads the files of the module, not those of modules inside of it.
func load() {
	text, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "module ") {
			module = strings.TrimSpace(strings.TrimPrefix(line, "module "))
		}
	}
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return nil
		}
		if info.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || info.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(path, ".go") {
			if file, err := parser.ParseFile(fset, path, nil, 0); err == nil {
				folder, _ := filepath.Rel(root, filepath.Dir(path))
				if folder == "." {
					folder = ""
				}
				parsed[folder] = append(parsed[folder], file)
			}
		}
		return nil
	})
}

type inside struct{}

func (inside) Import(name string) (*types.Package, error) {
	if name == module || strings.HasPrefix(name, module+"/") {
		return check(strings.TrimPrefix(strings.TrimPrefix(name, module), "/")), nil
	}
	return library.Import(name)
}

// check types a package without its tests, once: importers of it must meet the same types.
func check(folder string) *types.Package {
	if found, ok := checked[folder]; ok {
		return found
	}
	var files []*ast.File
	for _, file := range parsed[folder] {
		if !isTest(file.Pos()) && (len(files) == 0 || file.Name.Name == files[0].Name.Name) {
			files = append(files, file)
		}
	}
	checked[folder] = types.NewPackage(module+"/"+folder, "none")
	if len(files) > 0 {
		checked[folder] = checkFiles(folder, files, nil)
	}
	return checked[folder]
}

func checkFiles(folder string, files []*ast.File, info *types.Info) *types.Package {
	config := types.Config{Importer: inside{}, Error: func(error) {}, FakeImportC: true}
	found, _ := config.Check(module+"/"+folder, fset, files, info)
	return found
}

// byName tells the packages of a folder apart, of which one may be that of its tests from outside.
func byName(files []*ast.File) map[string][]*ast.File {
	found := map[string][]*ast.File{}
	for _, file := range files {
		found[file.Name.Name] = append(found[file.Name.Name], file)
	}
	return found
}

func isTest(pos token.Pos) bool {
	return strings.HasSuffix(fset.Position(pos).Filename, "_test.go")
}

func place(pos token.Pos) []any {
	at := fset.Position(pos)
	name, _ := filepath.Rel(root, at.Filename)
	return []any{name, at.Line}
}
