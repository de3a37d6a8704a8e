// Which named types of a module have what its interfaces ask for, by go/types, as JSON lines:
// {"interface": [file, line], "name": …, "methods": …, "type": [file, line], "type_name": …}, a row without a type for
// each interface, {"read": file} for each file, and {"unjudged": [file, line]} for what has type parameters.
//
//	go run go_implements.go ROOT        in the module's own folder
package main

import (
	"encoding/json"
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

type inside struct{}

func (inside) Import(name string) (*types.Package, error) {
	if name == module || strings.HasPrefix(name, module+"/") {
		return check(strings.TrimPrefix(strings.TrimPrefix(name, module), "/")), nil
	}
	return library.Import(name)
}

func isTest(file *ast.File) bool {
	return strings.HasSuffix(fset.Position(file.Pos()).Filename, "_test.go")
}

func checkFiles(path string, files []*ast.File) *types.Package {
	config := types.Config{Importer: inside{}, Error: func(error) {}, FakeImportC: true}
	found, _ := config.Check(path, fset, files, nil)
	return found
}

// check types a package without its tests, once: importers of it must meet the same types.
func check(folder string) *types.Package {
	if found, ok := checked[folder]; ok {
		return found
	}
	var files []*ast.File
	for _, file := range parsed[folder] {
		if !isTest(file) && (len(files) == 0 || file.Name.Name == files[0].Name.Name) {
			files = append(files, file)
		}
	}
	checked[folder] = types.NewPackage(module+"/"+folder, "none")
	if len(files) > 0 {
		checked[folder] = checkFiles(module+"/"+folder, files)
	}
	return checked[folder]
}

func place(pos token.Pos) []any {
	at := fset.Position(pos)
	name, _ := filepath.Rel(root, at.Filename)
	return []any{name, at.Line}
}

// named lists what a package names at its top level; of a reading with tests what they add.
func named(found *types.Package, onlyTests bool) []*types.TypeName {
	var all []*types.TypeName
	for _, name := range found.Scope().Names() {
		one, ok := found.Scope().Lookup(name).(*types.TypeName)
		if !ok || one.IsAlias() || onlyTests && !strings.HasSuffix(fset.Position(one.Pos()).Filename, "_test.go") {
			continue
		}
		if one.Type().(*types.Named).TypeParams().Len() > 0 {
			out.Encode(map[string]any{"unjudged": place(one.Pos())})
			continue
		}
		all = append(all, one)
	}
	return all
}

func asked(all []*types.TypeName) (found []*types.TypeName) {
	for _, one := range all {
		if held, ok := one.Type().Underlying().(*types.Interface); ok && held.IsMethodSet() && held.NumMethods() > 0 {
			found = append(found, one)
			out.Encode(map[string]any{"interface": place(one.Pos()), "name": one.Name(), "methods": held.NumMethods()})
		}
	}
	return found
}

func judge(all, interfaces []*types.TypeName) {
	for _, one := range all {
		if types.IsInterface(one.Type()) {
			continue
		}
		for _, other := range interfaces {
			held := other.Type().Underlying().(*types.Interface)
			if types.Implements(one.Type(), held) || types.Implements(types.NewPointer(one.Type()), held) {
				out.Encode(map[string]any{
					"interface": place(other.Pos()), "name": other.Name(), "methods": held.NumMethods(),
					"type": place(one.Pos()), "type_name": one.Name(),
				})
			}
		}
	}
}

func main() {
	root, _ = filepath.Abs(os.Args[1])
	text, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "module ") {
			module = strings.TrimSpace(strings.TrimPrefix(line, "module "))
		}
	}
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if info.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || info.Name() == "testdata" {
				return filepath.SkipDir // another module
			}
		}
		if err == nil && strings.HasSuffix(path, ".go") {
			if file, err := parser.ParseFile(fset, path, nil, 0); err == nil {
				folder, _ := filepath.Rel(root, filepath.Dir(path))
				if folder == "." {
					folder = ""
				}
				parsed[folder] = append(parsed[folder], file)
				out.Encode(map[string]any{"read": place(file.Package)[0]})
			}
		}
		return nil
	})
	var all []*types.TypeName
	for folder := range parsed {
		all = append(all, named(check(folder), false)...)
	}
	interfaces := asked(all)
	judge(all, interfaces)
	// Tests are read beside their package, in which its types are others than those that importers see.
	for folder, files := range parsed {
		byName := map[string][]*ast.File{}
		for _, file := range files {
			byName[file.Name.Name] = append(byName[file.Name.Name], file)
		}
		for name, some := range byName {
			found := checkFiles(module+"/"+folder, some)
			own := named(found, true)
			judge(own, interfaces)
			added := asked(own)
			judge(own, added)
			judge(all, added)
			if !strings.HasSuffix(name, "_test") {
				judge(own, packages(found, interfaces))
			}
		}
	}
}

// packages returns, of interfaces, those that a second reading of their package has again.
func packages(found *types.Package, interfaces []*types.TypeName) (again []*types.TypeName) {
	for _, one := range interfaces {
		if one.Pkg().Path() == found.Path() {
			if other, ok := found.Scope().Lookup(one.Name()).(*types.TypeName); ok {
				again = append(again, other)
			}
		}
	}
	return again
}
