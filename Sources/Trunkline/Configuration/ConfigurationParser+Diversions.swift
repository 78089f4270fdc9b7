import CallFlow
import TrunklineAudioCodecs
import TrunklineMediaSession
import Yams

/// `diversions:` of a user or a route: the rules for unanswered calls.
extension ConfigurationParser {
  func diversions(_ section: Section) -> Diversions {
    var out = Diversions()
    guard section.has("diversions") else { return out }
    let all = section.section("diversions")
    for trigger in DiversionTrigger.allCases where all.has(trigger.key) {
      let row = all.section(trigger.key)
      guard let target = target(row) else { continue }
      var rule = Diversions.Rule(target)
      if trigger == .unreached || trigger == .noAnswer, row.has("after") {
        rule.after = row.duration("after", in: .seconds(1) ... .seconds(600), default: .seconds(20))
      }
      out.rules[trigger] = rule
    }
    return out
  }

  private func target(_ row: Section) -> Diversions.Target? {
    let given = ["user", "number", "play", "code"].filter(row.has)
    guard given.count == 1 else {
      problem(row.path, "needs exactly one of user: ID, number: \"+15551230009\", play: FILE.wav, code: 486")
      return nil
    }
    if row.has("show_caller"), given != ["number"] { problem(row.path("show_caller"), "goes with number:") }
    if row.has("shows"), given != ["play"] { problem(row.path("shows"), "goes with play:") }
    if row.has("early"), given != ["play"] { problem(row.path("early"), "goes with play:") }
    switch given[0] {
    case "user": return row.string("user").map { .user($0) }
    case "number":
      return row.value("number", "a number such as \"+15551230009\"", number).map {
        .number($0, showsCaller: row.flag("show_caller", default: false))
      }
    case "play":
      guard var out = recording(row) else { return nil }
      out.isEarly = row.flag("early", default: out.isEarly)
      out.isMissed = row.value("shows", "missed or diverted") { ["missed": true, "diverted": false][$0] } ?? out.isMissed
      return .recording(out)
    default: return .code(row.integer("code", in: Limits.refusals, default: 486))
    }
  }

  /// A file is read once, however many users name it.
  private func recording(_ row: Section) -> Diversions.Recording? {
    guard let name = row.string("play") else { return nil }
    let path = resolve(name)
    if recordings[path] == nil {
      guard let audio = audio(row, "play", limit: Limits.recordingBytes) else { return nil }
      if audio.count(.narrowband) == 0 { problem(row.path("play"), "\(path) is empty") }
      recordings[path] = Announcement(audio)
    }
    return recordings[path].map { .init(name: path.split(separator: "/").last.map(String.init) ?? path, audio: $0) }
  }

  /// Users must exist, and numbers must not lead back to this gateway.
  func checkDiversions(_ diversions: Diversions, _ path: String, _ configuration: Settings, of own: String? = nil) {
    for (trigger, rule) in diversions.rules {
      let key = path + ".diversions." + trigger.key
      switch rule.target {
      case .user(let id):
        if configuration.anyUser == nil, !configuration.users.contains(where: { $0.id == id }) {
          problem(key + ".user", "there is no user \"\(id)\"")
        }
        if id == own { problem(key + ".user", "is the user itself") }
      case .number(let number, _):
        if configuration.users.contains(where: { $0.numbers.contains(number) }) {
          problem(key + ".number", "\(number) is a user's number here: write user: ID")
        }
      case .recording, .code: break
      }
    }
  }
}
