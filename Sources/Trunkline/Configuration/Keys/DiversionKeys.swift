import CallModel
import TrunklineAudioCodecs
import TrunklineMediaSession

/// `diversions:` of a user or a route: the rules for unanswered calls.
extension ConfigurationKeys {
  static let diversions = KeyTable<Diversions>(
    .init(), .atSIGHUP, about: "A rule of the user goes before that of the route.",
    [
      rule(.unreached, timedDiversion, "No device rings: none could be woken, or all of them filter the call."),
      rule(.busy, diversion, "Every device that responded was busy."),
      rule(.declined, diversion, "The user declined."),
      rule(.noAnswer, timedDiversion, "Devices rang and none answered."),
      rule(.mediaFailed, diversion, "A device answered, and its media did not come."),
    ])

  private static func rule(
    _ trigger: DiversionTrigger, _ table: KeyTable<DiversionDraft>, _ meaning: String
  ) -> Key<Diversions> {
    .init(trigger.key, .mapping, meaning, inner: table) { field, out in
      if field.isWritten, let rule = table.value(field)?.rule { out.rules[trigger] = rule }
    }
  }

  private static let timedDiversion = KeyTable<DiversionDraft>(
    .init(), .atSIGHUP, about: "Needs one of `user`, `number`, `play` and `code`.", targets,
    [
      .init(
        "after", .duration(.seconds(1) ... .seconds(600)), default: .none("`unreached`: 20s; `no_answer`: `timers.ring`"),
        "How long to wait until a device rings; for `no_answer`, how long the call rings."
      ) { field, out in
        out.after = field.duration(in: .seconds(1) ... .seconds(600))
      }
    ], rules: [oneTarget])

  private static let diversion = KeyTable<DiversionDraft>(
    .init(), .atSIGHUP, about: "Needs one of `user`, `number`, `play` and `code`.", targets, rules: [oneTarget])

  private static let targets: [Key<DiversionDraft>] = [
    .text("user", \.user, kind: "id of a user", "Another user's devices ring."),
    .optional(
      "number", \.number, "number", expected: "a number such as \"+15551230009\"",
      "A second call on the user's behalf, over the outbound routes.", parse: { number($0) }),
    .flag("show_caller", \.showsCaller, "With `number`: it shows the caller's number, where the trunk lets it."),
    .init(
      "play", .file("WAV of at most \(Limits.recordingBytes / 1_000_000) MB"), "A recording is played, then the call ends."
    ) { field, out in
      out.recording = playedFile(field)
    },
    .flag(
      "early", \.isEarly, "With `play`: as early media (183); the call is then refused and never answered."),
    .words(
      "shows", \.isMissed, [("missed", true), ("diverted", false)],
      "With `play`: what devices show of the call; `diverted` hides the missed call."),
    .limit("code", \.code, Limits.refusals, none: "–", "The final response."),
  ]

  @Sendable private static func oneTarget(_ row: Section, _ out: inout DiversionDraft) {
    let given = ["user", "number", "play", "code"].filter(row.has)
    guard given.count == 1 else {
      return row.problem("needs exactly one of user: ID, number: \"+15551230009\", play: FILE.wav, code: 486")
    }
    if row.has("show_caller"), given != ["number"] { row["show_caller"].problem("goes with number:") }
    if row.has("shows"), given != ["play"] { row["shows"].problem("goes with play:") }
    if row.has("early"), given != ["play"] { row["early"].problem("goes with play:") }
  }

  /// A file is read once, however many users name it.
  private static func playedFile(_ field: Field) -> Diversions.Recording? {
    guard let name = field.string() else { return nil }
    let parser = field.parser
    let path = parser.resolve(name)
    if parser.recordings[path] == nil {
      guard let audio = field.audio(limit: Limits.recordingBytes) else { return nil }
      if audio.count(.narrowband) == 0 { field.problem("\(path) is empty") }
      parser.recordings[path] = Announcement(audio)
    }
    return parser.recordings[path].map { .init(name: path.split(separator: "/").last.map(String.init) ?? path, audio: $0) }
  }
}

private struct DiversionDraft: Sendable {
  var user: String?
  var number: String?
  var showsCaller = false
  var recording: Diversions.Recording?
  var isEarly = false
  var isMissed = true
  var code: Int?
  var after: Duration?

  /// Nil after an error.
  var rule: Diversions.Rule? {
    guard let target else { return nil }
    var out = Diversions.Rule(target)
    out.after = after
    return out
  }

  private var target: Diversions.Target? {
    if let user { return .user(user) }
    if let number { return .number(number, showsCaller: showsCaller) }
    if var recording {
      recording.isEarly = isEarly
      recording.isMissed = isMissed
      return .recording(recording)
    }
    return code.map { .code($0) }
  }
}
