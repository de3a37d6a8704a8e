// What Groovy's own parser says is defined in the files that stdin names, as JSON lines like those of ctags.
//     groovy definitions.groovy      (Debian: groovy)
import groovy.json.JsonOutput
import org.codehaus.groovy.ast.ClassNode
import org.codehaus.groovy.control.CompilationFailedException
import org.codehaus.groovy.control.CompilationUnit
import org.codehaus.groovy.control.Phases

System.in.eachLine { path ->
    def tell = { int line, String name, String kind ->
        // What the parser itself adds has no place.
        if (line > 0 && name && !name.startsWith('<')) println JsonOutput.toJson([_type: 'tag', path: path, line: line, name: name, kind: kind])
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
