import TrunklineAppProtocol
import TrunklineBytes

/// The user's directory, for an app that follows it: which version to request, and the parts of an answer until all have arrived.
///
/// | event | effect |
/// |---|---|
/// | `follow` | from now on the app's version counts; the newest version that the gateway has named stays |
/// | `welcomed`, `changed` | the gateway's version and directories; `wanted` if they are others than the app's |
/// | `asked` | nothing more is wanted until the answer; nil: the request was not sent, and stays wanted |
/// | `answered` with parts | `received` gathers them; a part of another version, or without an answer, is ignored |
/// | an answer of another version than the one before | its parts start again |
/// | the last part, more to follow | `Output.ask` for the rest |
/// | the last part | `Output.parts`, all together; `wanted` again if the gateway's version has changed meanwhile |
/// | `answered` with a failure, or without a directory | `wanted` after `retryAt`; never if the gateway has no directories |
/// | `wentOffline` between an answer and its parts | wanted again, from the start |
/// | `sessionEnded` | the same; an open request is not answered any more |
struct FollowedDirectory: Sendable {
  enum Output: Sendable {
    case none
    /// The rest of a version, at once.
    case ask(DirectoryGet)
    /// A version of the directory is complete; without parts it is empty, and the app is not notified.
    case parts([DirectoryPart])
  }
  private struct Following: Sendable {
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
    /// Drops the received parts of an answer.
    mutating func startAgain() { (answer, gathered, missing) = (nil, [], 0) }
  }

  /// Nil: the app follows no directory.
  private var following: Following?
  private var hasDirectory = false
  /// The newest version that the gateway has named.
  private var version = 0

  var retryAt: Instant? { following?.retryAt }

  /// The request that brings the app's directory up to date.
  var wanted: DirectoryGet? {
    guard hasDirectory, let following, following.question == nil, following.answer == nil, following.retryAt == nil,
      following.isBehind
    else { return nil }
    return DirectoryGet(have: following.have, of: following.of)
  }

  mutating func follow(have: Int?, of: String?) {
    let known = following?.known ?? version
    following = Following(have: have, of: of)
    following?.known = known
  }

  mutating func asked(_ question: Identifier?) { following?.question = question }

  func isQuestion(_ id: Identifier) -> Bool { following?.question == id }

  // MARK: the session

  mutating func welcomed(_ welcome: Welcome) {
    hasDirectory = welcome.caps.contains("dir")
    version = welcome.dirVersion
    following?.known = welcome.dirVersion
    following?.knownOf = nil
  }

  mutating func changed(_ changed: DirectoryChanged) {
    version = changed.version
    following?.known = changed.version
    following?.knownOf = changed.of
  }

  /// The rest of the parts was lost with the socket; the session repeats a request without an answer.
  mutating func wentOffline() { following?.startAgain() }

  mutating func sessionEnded() {
    following?.question = nil
    following?.startAgain()
  }

  mutating func retryDue() { following?.retryAt = nil }

  // MARK: the answer and its parts

  /// The answer to the request; `isQuestion` holds.
  mutating func answered(_ result: Result<Success, Failure>, at now: Instant) -> Output {
    following?.question = nil
    switch result {
    case .failure(let failure):
      following?.startAgain()
      if failure.code == .unsupported { hasDirectory = false }
      following?.retryAt = now + .milliseconds(max(1_000, failure.retryMs ?? 5_000))
    case .success(let success):
      guard let answer = success.dir else {
        following?.retryAt = now + Limits.directoryRetry
        return .none
      }
      if let first = following?.gathered.first,
        first.version != answer.version || first.from != answer.from || first.of != answer.of
      {
        following?.gathered = []
      }
      following?.answer = answer
      following?.missing = max(0, answer.parts)
      if answer.parts <= 0 { return finishAnswer() }
    }
    return .none
  }

  mutating func received(_ part: DirectoryPart) -> Output {
    guard let answer = following?.answer, let missing = following?.missing, missing > 0, part.version == answer.version,
      part.from == answer.from
    else { return .none }
    following?.gathered.append(part)
    following?.missing = missing - 1
    guard following?.gathered.count ?? 0 <= Limits.directoryParts else {
      following?.startAgain()
      return .none
    }
    return missing == 1 ? finishAnswer() : .none
  }

  private mutating func finishAnswer() -> Output {
    guard var now = following, let answer = now.answer else { return .none }
    // the gathered parts are not copied: `following` is released until it is put back
    following = nil
    defer { following = now }
    now.answer = nil
    if let next = answer.next { return .ask(DirectoryGet(have: now.have, version: answer.version, after: next, of: now.of)) }
    let parts = now.gathered
    now.gathered = []
    now.have = answer.version
    now.of = answer.of
    now.knownOf = answer.of
    // it may have changed since
    now.known = max(now.known, answer.version)
    return .parts(parts)
  }
}
