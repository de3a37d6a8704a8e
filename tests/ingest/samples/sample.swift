import Foundation
import struct Auth.Token

let limit = 10

/// Something that signs in.
public protocol Authenticatable: AnyObject, Sendable {
    var name: String { get }
    associatedtype Session
    func authenticate() async throws -> Bool
}

/// A user.
public class User: Person, Authenticatable {
    var name: String = "x"
    private(set) lazy var items: [Int] = []
    init(name: String) { self.name = name }
    deinit { close() }
    func authenticate() async throws -> Bool { return check(token: "t \(limit)") }
    subscript(index: Int) -> Int { return items[index] }
    static func == (a: User, b: User) -> Bool { true }
}

struct Guest { let id: Int }

extension Guest: Authenticatable, Codable {
    func authenticate() -> Bool { User(name: "g").authenticate() }
}

enum Role: String, CaseIterable { case admin, guest = "g"; indirect case nested(Role) }
typealias Handler = (User) -> Void
actor Bank { var total = 0 }
func helper<T: Authenticatable>(_ x: T) -> T { let local = x; return local }
extension Array where Element == User { var first2: [User] { Array(prefix(2)) } }
extension Dictionary<String, Int> { static let `default` = [String: Int]() }
extension Bank.Vault<Int> { func `repeat`() { `repeat`() } }
infix operator <~>: Chaining
precedencegroup Chaining { associativity: left }
func <~> (a: Int, b: Int) -> Int { a + b }
@freestanding(expression) public macro quote<T>(_ value: T) -> (T, String) = #externalMacro(module: "Q", type: "Quote")
let (width, height) = (1, 2)
struct Till { var sum: Int { get { let half = 1; return half } set { let kept = newValue } }
    var open = true { didSet { let before = oldValue } } }
