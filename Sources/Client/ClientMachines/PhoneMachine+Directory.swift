import TrunklineAppProtocol
import TrunklineBytes

/// The user's directory and history; the app stores them.
extension PhoneMachine {
  mutating func follow(have: Int?, of: String?, _ now: Instant, _ out: inout [Action]) {
    directory.follow(have: have, of: of)
    askForDirectory(now, &out)
  }

  mutating func directoryRetryDue(_ now: Instant, _ out: inout [Action]) {
    directory.retryDue()
    askForDirectory(now, &out)
  }

  /// A message of the phone's own session that is about no call.
  mutating func received(_ message: ServerMessage, _ now: Instant, _ out: inout [Action]) {
    switch message {
    case .dirChanged(let changed):
      directory.changed(changed)
      askForDirectory(now, &out)
    case .dirFull(let part), .dirDelta(let part): run(directory.received(part), now, &out)
    case .histChanged(let changed): out.append(.historyChanged(changed.id))
    default: break
    }
  }

  mutating func askForDirectory(_ now: Instant, _ out: inout [Action]) {
    if isRegistrable(), let get = directory.wanted { ask(get, now, &out) }
  }

  private mutating func ask(_ get: DirectoryGet, _ now: Instant, _ out: inout [Action]) {
    let question = ask(.dirGet(get), call: nil, now, &out)
    directory.asked(question)
  }

  mutating func run(_ output: FollowedDirectory.Output, _ now: Instant, _ out: inout [Action]) {
    switch output {
    case .none: break
    case .ask(let get): ask(get, now, &out)
    case .parts(let parts):
      if !parts.isEmpty { out.append(.directory(parts)) }
      askForDirectory(now, &out)
    }
  }
}
