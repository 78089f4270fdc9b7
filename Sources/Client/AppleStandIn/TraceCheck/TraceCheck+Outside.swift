import TrunklineBytes
import TrunklinePhoneLog

/// Acts of the user and changes of the network: complete in the stand-in's log; the SDK's trace has only the app's view of them.
extension TraceCheck {
  mutating func user(_ line: LogLine) {
    switch line.event {
    case "tap": tapped(line)
    case "tapRecent": tappedRecent(line)
    case "locked": give(.locked(line["on"] == "true"))
    case "foreground":
      let isOn = line["on"] == "true"
      if isOn { foregroundAt = now }
      give(.foreground(isOn))
    case "microphone":
      guard let says = line["says"].flatMap({ SystemMachine.Permission(rawValue: $0) }) else { return }
      give(.microphone(says))
    case "restarted":
      processEnded()
      give(.restarted)
    default: break
    }
  }

  mutating func network(_ line: LogLine) {
    switch line.event {
    case "cellular": give(.cellular(line["on"] == "true")) { _ in .r9 }
    default: break
    }
  }

  private mutating func tapped(_ line: LogLine) {
    guard let button = line["button"] else { return }
    let (id, isOn) = (call(line), line["on"] == "true")
    let tap: SystemMachine.Tap? =
      switch button {
      case "answer": id.map { .answer($0) }
      case "end": id.map { .end($0) }
      case "hold": id.map { .hold($0, isOn) }
      case "mute": id.map { .mute($0, isOn) }
      case "digits": id.map { .digits($0, line["digits"] ?? "") }
      case "holdAndAnswer": id.map { .holdAndAnswer($0) }
      case "endAndAnswer": id.map { .endAndAnswer($0) }
      case "speaker": .speaker(isOn)
      case "headset": .headset
      default: nil
      }
    guard let tap else { return }
    lastTap = tap
    var isSecond = false
    switch tap {
    case .holdAndAnswer, .endAndAnswer, .headset: isSecond = true
    default: break
    }
    give(.tap(tap)) { request in
      if isSecond { return .r25 }
      if case .answer = tap, !request.isAnswer { return .r26 }
      return .r7
    }
  }

  private mutating func tappedRecent(_ line: LogLine) {
    let kind = line["kind"].flatMap { SystemMachine.HandleKind(text: $0) } ?? .phoneNumber
    give(.tapRecent(.init(line["handle"] ?? "", kind: kind)))
  }
}
