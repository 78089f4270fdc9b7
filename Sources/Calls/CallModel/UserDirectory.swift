public import AppSessions

/// The users and their numbers: users of the configuration with their settings, imported numbers, and the settings of users that
/// are not listed. A look-up costs a hash or two, whatever the number of users. A value; read from any thread.
///
/// | a user | is known | settings | numbers |
/// |---|---|---|---|
/// | listed | yes | its own | its own, then the imported ones |
/// | not listed, with `anyone` | yes | those of its token (`UserGrants`), else of `anyone` | its token's, then the imported ones |
/// | not listed | no | – | its imported numbers ring no device |
///
/// A listed user's number is that user's, whatever was imported; an imported number is its user's, whatever a token states.
public struct UserDirectory: Sendable {
  /// The users of the configuration, as it writes them.
  public let listed: [Routing.User]
  /// The settings of users that are not listed; its `id` and `numbers` mean nothing. Nil: there are only listed users.
  public let anyone: Routing.User?
  public let imported: NumberTable
  /// What login tokens may grant; nil: nothing.
  public let grantRules: GrantRules?
  public var grants = UserGrants()
  /// `listed` with their imported numbers.
  private let known: [Routing.User]
  private let byID: [String: Int]
  /// By canonical number; of two with the same number the first has it.
  private let byNumber: [Substring: NumberPosition]

  private struct NumberPosition {
    var user: Int
    var number: Int
  }

  /// Costs a pass over the listed users.
  public init(
    _ listed: [Routing.User] = [], anyone: Routing.User? = nil, imported: NumberTable = NumberTable(),
    grantRules: GrantRules? = nil
  ) {
    (self.listed, self.anyone, self.imported, self.grantRules) = (listed, anyone, imported, grantRules)
    byID = Dictionary(listed.enumerated().map { ($0.element.id, $0.offset) }) { first, _ in first }
    var numbers: [Substring: NumberPosition] = [:]
    for (userIndex, user) in listed.enumerated() {
      for (index, number) in user.numbers.enumerated() where numbers[Routing.canonical(number)] == nil {
        numbers[Routing.canonical(number)] = NumberPosition(user: userIndex, number: index)
      }
    }
    byNumber = numbers
    known =
      imported.isEmpty
      ? listed
      : listed.map { user in
        var out = user
        out.numbers += imported.numbers(of: user.id).filter { numbers[Routing.canonical($0)] == nil }
        return out
      }
  }

  /// Nil: there is no such user.
  public func user(_ id: String) -> Routing.User? {
    if let index = byID[id] { return known[index] }
    guard var user = anyone, !id.isEmpty else { return nil }
    user.id = id
    user.numbers = []
    if let grant = grants[id] { user = grant.user(id, user) }
    user.numbers = user.numbers.filter { isFree($0, for: id) }
    user.numbers += imported.numbers(of: id).filter { byNumber[Routing.canonical($0)] == nil && !user.numbers.contains($0) }
    return user
  }

  public func contains(_ id: String) -> Bool { byID[id] != nil || (anyone != nil && !id.isEmpty) }

  /// The user of a number, and its spelling in the user's settings or the import; compared by `Routing.canonical`.
  public func owner(of number: String) -> (user: String, number: String)? {
    if let position = byNumber[Routing.canonical(number)] {
      return (listed[position.user].id, listed[position.user].numbers[position.number])
    }
    guard let found = imported.owner(of: number) ?? grants.owner(of: number), contains(found.user) else { return nil }
    return found
  }

  public func isListed(_ id: String) -> Bool { byID[id] != nil }

  /// The configuration or an import states whose the number is.
  package func isSettled(number: String) -> Bool {
    byNumber[Routing.canonical(number)] != nil || imported.owner(of: number) != nil
  }

  /// No listed user has the number, and no other user than `id` has it by import.
  package func isFree(_ number: String, for id: String) -> Bool {
    byNumber[Routing.canonical(number)] == nil && imported.owner(of: number).map { $0.user == id } ?? true
  }
}
