import TrunklineAppProtocol
import TrunklineBytes

/// The user's directory and history; the app stores them.
///
/// | event | sends `dir.get` |
/// |---|---|
/// | online with another version than the app's | yes |
/// | `dir.changed`, also of other directories (`of`) | yes, or again after the open answer |
/// | an answer with `next` | for the rest |
/// | an answer of another version than the one before | its parts start again |
/// | offline between an answer and its parts | when online again, from the start |
/// | `err` | after its `retryMs`; never if the gateway has no directories |
extension PhoneMachine {
  struct Following: Sendable {
    /// The app's version; nil: it has none.
    var have: Int?
    /// The directories of that version, if the gateway names them.
    var of: String?
    /// The request that is not answered yet.
    var question: Identifier?
    var gathered: [DirectoryPart] = []
    /// The answer whose parts are being received.
    var answer: DirectoryAnswer?
    /// Number of parts that have not arrived.
    var missing = 0
    /// The newest version that the gateway has named.
    var known = 0
    /// The directories that the gateway has named last; nil: it named none.
    var knownOf: String?
    var retryAt: Instant?

    var isBehind: Bool { known != have ?? 0 || (have != nil && knownOf != nil && knownOf != of) }
  }

  mutating func follow(have: Int?, of: String?, _ now: Instant, _ out: inout [Action]) {
    let known = following?.known ?? directoryVersion
    following = Following(have: have, of: of)
    following?.known = known
    askForDirectory(now, &out)
  }

  /// - Parameter number: the session's number; 0 is the phone's own.
  mutating func directoryWelcomed(_ welcome: Welcome, _ now: Instant, _ out: inout [Action]) {
    hasDirectory = welcome.caps.contains("dir")
    directoryVersion = welcome.dirVersion
    following?.known = welcome.dirVersion
    following?.knownOf = nil
    askForDirectory(now, &out)
  }

  /// Drops the received parts of an answer, whose rest was lost with the socket; the session repeats a request without an answer.
  mutating func directoryOffline() {
    following?.answer = nil
    following?.gathered = []
    following?.missing = 0
  }

  mutating func forgetDirectoryQuestion() {
    following?.question = nil
    directoryOffline()
  }

  mutating func directoryRetryDue(_ now: Instant, _ out: inout [Action]) {
    following?.retryAt = nil
    askForDirectory(now, &out)
  }

  /// True if it was one of these messages.
  mutating func directoryReceived(_ message: ServerMessage, _ now: Instant, _ out: inout [Action]) -> Bool {
    switch message {
    case .dirChanged(let changed):
      directoryVersion = changed.version
      following?.known = changed.version
      following?.knownOf = changed.of
      askForDirectory(now, &out)
    case .dirFull(let part), .dirDelta(let part): handle(part, now, &out)
    case .histChanged(let changed): out.append(.historyChanged(changed.id))
    default: return false
    }
    return true
  }

  private mutating func askForDirectory(_ now: Instant, _ out: inout [Action]) {
    guard hasDirectory, isRegistrable(), let following, following.question == nil, following.answer == nil,
      following.retryAt == nil, following.isBehind
    else { return }
    ask(DirectoryGet(have: following.have, of: following.of), now, &out)
  }

  private mutating func ask(_ get: DirectoryGet, _ now: Instant, _ out: inout [Action]) {
    let question = ask(.dirGet(get), call: nil, now, &out)
    following?.question = question
  }

  /// True if it was the answer to `dir.get`.
  mutating func directoryAnswered(
    _ id: Identifier, _ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]
  ) -> Bool {
    guard let question = following?.question, question == id else { return false }
    following?.question = nil
    switch result {
    case .failure(let failure):
      directoryOffline()
      if failure.code == .unsupported { hasDirectory = false }
      following?.retryAt = now + .milliseconds(max(1_000, failure.retryMs ?? 5_000))
    case .success(let success):
      guard let answer = success.dir else {
        following?.retryAt = now + Limits.directoryRetry
        return true
      }
      if let first = following?.gathered.first,
        first.version != answer.version || first.from != answer.from || first.of != answer.of
      {
        following?.gathered = []
      }
      following?.answer = answer
      following?.missing = max(0, answer.parts)
      if answer.parts <= 0 { partsAreHere(now, &out) }
    }
    return true
  }

  private mutating func handle(_ part: DirectoryPart, _ now: Instant, _ out: inout [Action]) {
    guard let answer = following?.answer, let missing = following?.missing, missing > 0, part.version == answer.version,
      part.from == answer.from
    else { return }
    following?.gathered.append(part)
    following?.missing = missing - 1
    guard following?.gathered.count ?? 0 <= Limits.directoryParts else { return directoryOffline() }
    if missing == 1 { partsAreHere(now, &out) }
  }

  private mutating func partsAreHere(_ now: Instant, _ out: inout [Action]) {
    guard let answer = following?.answer else { return }
    following?.answer = nil
    if let next = answer.next {
      let (have, of) = (following?.have, following?.of)
      return ask(DirectoryGet(have: have, version: answer.version, after: next, of: of), now, &out)
    }
    let parts = following?.gathered ?? []
    following?.gathered = []
    following?.have = answer.version
    following?.of = answer.of
    following?.knownOf = answer.of
    // it may have changed since
    let known = max(following?.known ?? 0, answer.version)
    following?.known = known
    if !parts.isEmpty { out.append(.directory(parts)) }
    askForDirectory(now, &out)
  }
}
