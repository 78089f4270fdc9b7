import Foundation
import Observation
import SamplePhone
import TrunklineCallKit

/// A view of text over the model: a line for each thing that changes. It reads what a SwiftUI view would, and follows it in the same way.
@MainActor final class TextScreen {
  private let model: SampleModel
  private let answers: Bool
  private var shown: [String: String] = [:]
  private var answered: Set<UUID> = []
  private var dials: String?

  init(_ model: SampleModel, answers: Bool, dials: String?) { (self.model, self.answers, self.dials) = (model, answers, dials) }

  func show() {
    withObservationTracking {
      draw()
    } onChange: { [weak self] in
      Task { @MainActor in self?.show() }
    }
    act()
  }

  /// What the command line asked for. Not while it is drawn: a change within is not followed.
  private func act() {
    for call in model.calls where answers && call.state == .ringing && call.account != nil {
      if answered.insert(call.id).inserted { call.answer() }
    }
    guard model.state == .online, let number = dials else { return }
    dials = nil
    model.call(number)
  }

  private func draw() {
    line("phone", model.state.description)
    for call in model.calls {
      let marks = [call.isHeld ? "held" : nil, call.isMuted ? "muted" : nil, call.isHeldByPeer ? "held by the other side" : nil]
      let text =
        ([call.direction == .incoming ? "from" : "to", call.peer.description, word(call.state)] + marks.compactMap { $0 })
      line("call \(call.id.uuidString.prefix(8))", text.joined(separator: " "))
      _ = call.account
    }
    if let recent = model.recents.first { line("recent", Self.text(recent)) }
    if let notice = model.notice { line("notice", notice) }
  }

  /// Without the seconds: a line a call, not a line a second.
  private func word(_ state: Call.State) -> String {
    if case .connected = state { return "connected" }
    return state.description
  }

  private func line(_ name: String, _ text: String) {
    guard shown.updateValue(text, forKey: name) != text else { return }
    say(name + ": " + text)
  }

  /// Not `print`: its buffer is flushed together with standard input's, which somebody reads.
  private func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

  private static func text(_ recent: RecentCall) -> String {
    let length = recent.seconds.map { ", \($0) s" } ?? ""
    return "\(recent.isOutgoing ? "to" : "from") \(recent.title) \(recent.isMissed ? "missed" : recent.reason)\(length)"
  }

  // MARK: what a user does

  /// False: the app ends.
  func handle(_ command: String) -> Bool {
    let words = command.split(separator: " ").map(String.init)
    let rest = words.dropFirst().joined(separator: " ")
    let isOn = rest == "on"
    switch words.first {
    case nil: break
    case "call": rest.isEmpty ? model.dial() : model.call(rest)
    case "answer": model.current?.answer()
    case "decline": model.current?.decline()
    case "end": model.current?.end()
    case "hold": model.current?.hold(isOn)
    case "mute": model.current?.mute(isOn)
    case "digits": model.current?.send(digits: rest)
    case "transfer": model.current?.transfer(to: rest)
    case "dnd": model.settings.doesNotDisturb = isOn
    case "from": model.settings.callerNumber = rest
    case "recents": for recent in model.recents { say("- " + Self.text(recent)) }
    case "logout": Task { await model.logOut() }
    case "quit": return false
    case let word?: say("unknown command \(word); --help lists all")
    }
    return true
  }
}
