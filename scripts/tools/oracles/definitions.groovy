// Prints the definitions in the files listed on stdin, by Groovy's own parser, as JSON lines like those of ctags.
//     groovy definitions.groovy      (Debian: groovy)
import groovy.json.JsonOutput
import org.codehaus.groovy.ast.ClassNode
import org.codehaus.groovy.control.CompilationFailedException
import org.codehaus.groovy.control.CompilationUnit
import org.codehaus.groovy.control.Phases

System.in.eachLine { path ->
    def lines = new File(path).readLines()
    def tell = { int start, String name, String kind ->
        // Nodes added by the parser have no position; a class inside an expression has a number as its name.
        if (start <= 0 || !name || name.startsWith('<') || name.isInteger()) return
        // The parser's range includes annotations: the name is the first occurrence of its word after them.
        def line = kind == 'package' ? start : (start..Math.min(start + 40, lines.size())).find { lines[it - 1] =~ /(?<![\w@.])${java.util.regex.Pattern.quote(name)}(?!\w)/ } ?: start
        println JsonOutput.toJson([_type: 'tag', path: path, line: line, name: name, kind: kind])
    }
    def unit = new CompilationUnit()
    unit.addSource(new File(path))
    try {
        unit.compile(Phases.CONVERSION)
    } catch (CompilationFailedException ignored) {
        println JsonOutput.toJson([_type: 'unread', path: path])
        return
    }
    unit.AST.modules.each { module ->
        if (module.package) tell(module.package.lineNumber, module.package.name.tokenize('.')[-1], 'package')
        module.methods.each { tell(it.lineNumber, it.name, 'function') }
        module.classes.findAll { !it.script }.each { ClassNode type ->
            tell(type.lineNumber, type.nameWithoutPackage.tokenize('$')[-1], 'class')
            type.methods.each { tell(it.lineNumber, it.name, 'method') }
            type.declaredConstructors.each { tell(it.lineNumber, type.nameWithoutPackage.tokenize('$')[-1], 'constructor') }
            type.fields.each { tell(it.lineNumber, it.name, 'field') }
            type.properties.each { tell(it.lineNumber, it.name, 'property') }
        }
    }
}
