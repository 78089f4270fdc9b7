/// The Contact of a 302 to another node of the cluster.
enum SteeredContact {
  /// A URI parameter of ours (RFC 3261 §19.1.1: unknown ones are kept).
  private static let mark = "x-steered"

  /// - Parameter node: `sip:10.0.0.5:5060;transport=tcp`, without a user.
  static func contact(_ user: String, at node: String) -> String {
    let rest = node.hasPrefix("sip:") ? node.dropFirst("sip:".count) : node[...]
    return user.isEmpty ? "<sip:\(rest);\(mark)>" : "<sip:\(user)@\(rest);\(mark)>"
  }

  /// - Parameter parameters: of a Request-URI, from the first `;` on.
  static func isMarked(_ parameters: String) -> Bool {
    parameters.split(separator: ";").contains { $0.lowercased() == mark || $0.lowercased().hasPrefix(mark + "=") }
  }
}
