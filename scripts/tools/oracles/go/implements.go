package main

import (
	"go/types"
	"strings"
)

// tellImplements says which named types have what interfaces ask for:
// {"interface": [file, line], "name": …, "methods": …, "type": [file, line], "type_name": …}, a row without a type for
// each interface, {"read": file} for each file, and {"unjudged": [file, line]} for what has type parameters.
func tellImplements() {
	var all []*types.TypeName
	for folder, files := range parsed {
		for _, file := range files {
			out.Encode(map[string]any{"read": place(file.Package)[0]})
		}
		all = append(all, named(check(folder), false)...)
	}
	interfaces := asked(all)
	judge(all, interfaces)
	// Tests are read beside their package, in which its types are others than those that importers see.
	for folder, files := range parsed {
		for name, some := range byName(files) {
			found := checkFiles(folder, some, nil)
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

// named lists what a package names at its top level; of a reading with tests what they add.
func named(found *types.Package, onlyTests bool) []*types.TypeName {
	var all []*types.TypeName
	for _, name := range found.Scope().Names() {
		one, ok := found.Scope().Lookup(name).(*types.TypeName)
		if !ok || one.IsAlias() || onlyTests && !isTest(one.Pos()) {
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
