// Prints the definitions in the files listed on stdin, by HCL's own parser, as JSON lines like those of ctags: blocks by
// their last label, and local values; definitions inside a block only if Terraform gives them a label.
//
//	go run hcl_definitions.go      (in a module that has github.com/hashicorp/hcl/v2)
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

type row struct {
	Type string `json:"_type"`
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		path := paths.Text()
		data, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		file, problems := hclsyntax.ParseConfig(data, path, hcl.InitialPos)
		if problems.HasErrors() {
			out.Encode(row{Type: "unread", Path: path})
			continue
		}
		var visit func(body *hclsyntax.Body)
		visit = func(body *hclsyntax.Body) {
			for _, block := range body.Blocks {
				// A dynamic block's label is the name of the blocks it makes, nothing of its own.
				if last := len(block.Labels) - 1; last >= 0 && block.Type != "dynamic" {
					out.Encode(row{"tag", path, block.LabelRanges[last].Start.Line, block.Labels[last], block.Type})
				}
				if block.Type == "locals" {
					for _, local := range block.Body.Attributes {
						out.Encode(row{"tag", path, local.NameRange.Start.Line, local.Name, "local"})
					}
				}
				visit(block.Body)
			}
		}
		visit(file.Body.(*hclsyntax.Body))
	}
}
