import AudioCodecs
import Yams

extension Settings {
  /// `diversions:` of a user or a route: what becomes of calls that nobody takes.
  public struct Diversions: Sendable, Equatable {
    /// The keys of the file.
    public enum Trigger: String, Sendable, CaseIterable {
      case unreached, busy, declined
      case noAnswer = "no_answer"
      case mediaFailed = "media_failed"
    }
    public enum Target: Sendable, Equatable {
      case user(String)
      case number(String, showsCaller: Bool)
      /// The file's absolute path, and what it says at 8 kHz.
      case play(path: String, samples: [Int16], isEarly: Bool, shows: Shown = .missed)
      case code(Int)
    }
    /// What devices show of a call that a recording answered: CallKit lists `diverted` as answered elsewhere.
    public enum Shown: String, Sendable, CaseIterable { case missed, diverted }
    public struct Rule: Sendable, Equatable {
      public var target: Target
      public var after: Duration?
      public init(target: Target, after: Duration? = nil) { (self.target, self.after) = (target, after) }
    }
    public var rules: [Trigger: Rule] = [:]
  }
}

extension Walk {
  func diversions(_ section: Section) -> Settings.Diversions {
    var out = Settings.Diversions()
    guard section.has("diversions") else { return out }
    let all = section.section("diversions")
    for trigger in Settings.Diversions.Trigger.allCases where all.has(trigger.rawValue) {
      let row = all.section(trigger.rawValue)
      guard let target = target(row) else { continue }
      var rule = Settings.Diversions.Rule(target: target)
      if trigger == .unreached || trigger == .noAnswer, row.has("after") {
        rule.after = row.duration("after", in: .seconds(1) ... .seconds(600), default: .seconds(20))
      }
      out.rules[trigger] = rule
    }
    return out
  }

  private func target(_ row: Section) -> Settings.Diversions.Target? {
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
      let (isEarly, shows) = (row.flag("early", default: false), row.choice("shows", default: Settings.Diversions.Shown.missed))
      return recording(row).map { .play(path: $0, samples: $1, isEarly: isEarly, shows: shows) }
    default: return .code(row.integer("code", in: Limits.refusals, default: 486))
    }
  }

  /// Read once, however many users have it.
  private func recording(_ row: Section) -> (String, [Int16])? {
    guard let name = row.string("play") else { return nil }
    let path = resolve(name)
    if let known = recordings[path] { return (path, known) }
    guard let bytes = row.fileContent("play", limit: Limits.recordingBytes) else { return nil }
    do throws(WAVFile.FormatError) {
      let samples = try WAVFile.samples(of: bytes)
      guard !samples.isEmpty else {
        problem(row.path("play"), "\(path) is empty")
        return nil
      }
      recordings[path] = samples
      return (path, samples)
    } catch {
      problem(row.path("play"), "\(path): \(error)")
      return nil
    }
  }

  /// Users that must exist, and numbers that would lead back here.
  func checkDiversions(_ diversions: Settings.Diversions, _ path: String, _ configuration: Settings, of own: String? = nil) {
    for (trigger, rule) in diversions.rules {
      let key = path + ".diversions." + trigger.rawValue
      switch rule.target {
      case .user(let id):
        if !configuration.users.contains(where: { $0.id == id }) { problem(key + ".user", "there is no user \"\(id)\"") }
        if id == own { problem(key + ".user", "is the user itself") }
      case .number(let number, _):
        if configuration.users.contains(where: { $0.numbers.contains(number) }) {
          problem(key + ".number", "\(number) is a user's number here: write user: ID")
        }
      case .play, .code: break
      }
    }
  }
}
