import CallModel

extension ConfigurationParser {
  /// Users must exist, and numbers must not lead back to this gateway.
  func checkDiversions(_ diversions: Diversions, at path: String, in configuration: Settings, of own: String? = nil) {
    for (trigger, rule) in diversions.rules {
      let key = path + ".diversions." + trigger.key
      switch rule.target {
      case .user(let id):
        if configuration.anyUser == nil, !configuration.users.contains(where: { $0.id == id }) {
          problem(at: key + ".user", "there is no user \"\(id)\"")
        }
        if id == own { problem(at: key + ".user", "is the user itself") }
      case .number(let number, _):
        if configuration.users.contains(where: { $0.numbers.contains(number) }) {
          problem(at: key + ".number", "\(number) is a user's number here: write user: ID")
        }
      case .recording, .code: break
      }
    }
  }
}
