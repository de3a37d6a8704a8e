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
