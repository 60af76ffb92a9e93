import Foundation
@available(iOS 13, *)
public final class Cart<T: Codable>: Base, Shape where T: Hashable {
  private let items: [T] = []
  var count: Int { return items.count }
  init?(items: [T] = []) { super.init() }
  deinit { }
  @discardableResult public static func find<R>(_ id: Int, by f: (T) -> R) throws -> [R] {
    func local() {}
    return "\(items.map { "}" })"
  }
  class func make() -> Cart { #"}"# }
  subscript(i: Int) -> T { items[i] }
}
extension Array where Element == Int { func total() -> Int { 0 } }
protocol Shape { func area() -> Double; var name: String { get } }
indirect enum Tree { case leaf, node(Tree) }
struct Point { let x: Int }
typealias Handler = (Int) -> Void
