import Foundation
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklinePhoneLog

/// The last events of the phone, for a bug report and for `trunkline-lab check-trace`: a line each, in the stand-in's log format.
///
/// The trace has all details of inputs and requests at the call system's interface; of other events it has the name. Numbers are
/// masked; names, digits and tokens are left out. A killed process writes nothing: the trace ends there.
final class PhoneTrace: Sendable {
  /// Lines that are kept; the oldest are dropped beyond that.
  static let limit = 500

  struct State {
    var lines: [String] = []
    /// The number of dropped lines.
    var dropped = 0
    var start: Instant?
    var pushes = 0
    var requests = 0
    /// Requests that the system has not answered.
    var asked: [SystemRequest: [Int]] = [:]
    /// The number of each handle that the trace has named.
    var handles: [Handle: Int] = [:]
    var file: TraceFile?
  }
  private let header: TraceHeader
  private let groups: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - system: the call system's type, as the rules are about CallKit's.
  ///   - groups: the number of simultaneous calls.
  init(system: String, groups: Int) {
    var header = TraceHeader(.sdk)
    (header.system, header.os) = (system, ProcessInfo.processInfo.operatingSystemVersionString)
    if Bundle.main.bundleIdentifier != nil {
      let modes = Bundle.main.object(forInfoDictionaryKey: "UIBackgroundModes") as? [String]
      header.hasVoIPBackgroundMode = modes?.contains("voip") == true
    }
    (self.header, self.groups) = (header, groups)
  }

  /// Header and lines.
  var text: [String] {
    state.withLock { state in
      var header = header
      header.dropped = state.dropped
      header.lines = state.lines.count
      return [header.line.description] + state.lines
    }
  }

  /// From now on each line is also written to the file, after the lines kept so far.
  func keep(at path: String) {
    state.withLock { state in
      var header = header
      header.dropped = state.dropped
      let file = TraceFile(path)
      for line in [header.line.description] + state.lines { file.add(line) }
      state.file = file
    }
  }
  var isKept: Bool { state.withLock { $0.file != nil } }

  // MARK: lines

  /// - Parameter isFromOtherQueue: the system delivered the input on another queue than the requested one (R18).
  func note(_ input: PhoneMachine.Input, _ now: Instant, isFromOtherQueue: Bool = false) {
    state.withLock { state in
      guard var line = state.line(of: input, groups) else { return }
      if isFromOtherQueue { line.fields.append(("queue", "other")) }
      state.add(line, now)
    }
  }
  func note(_ action: PhoneMachine.Action, _ now: Instant) {
    state.withLock { state in for line in state.lines(of: action) { state.add(line, now) } }
  }
  func note(_ note: CallSystemNote, _ now: Instant, isFromOtherQueue: Bool = false) {
    state.withLock { state in
      guard var line = state.line(of: note) else { return }
      if isFromOtherQueue { line.fields.append(("queue", "other")) }
      state.add(line, now)
    }
  }
  /// The push's delegate method is about to return, or has returned.
  func pushHandled(_ now: Instant) {
    state.withLock { state in state.add(Line(.app, "pushHandled", [("id", "\(state.pushes)")]), now) }
  }
  /// R29: whether the keychain accepts writes now.
  func keychain(isOpen: Bool, _ now: Instant) {
    state.withLock { $0.add(Line(.app, "keychain", [("open", "\(isOpen)")]), now) }
  }
  /// A start of a call from Recents, or by Siri (R17).
  func startCall(_ kind: Handle.Kind, _ now: Instant) {
    state.withLock { $0.add(Line(.system, "startCall", [("kind", kind.rawValue)]), now) }
  }

  /// A line without its time.
  struct Line {
    var who: LogLine.Who
    var event: String
    var fields: [LogLine.Field]
    init(_ who: LogLine.Who, _ event: String, _ fields: [LogLine.Field] = []) {
      (self.who, self.event, self.fields) = (who, event, fields)
    }
  }
}

extension PhoneTrace.State {
  /// Times count from the first line.
  mutating func add(_ line: PhoneTrace.Line, _ now: Instant) {
    let start = start ?? now
    self.start = start
    if lines.count >= PhoneTrace.limit {
      lines.removeFirst(PhoneTrace.limit / 4)
      dropped += PhoneTrace.limit / 4
    }
    let text = LogLine(.zero + max(.zero, now - start), line.who, line.event, line.fields).description
    lines.append(text)
    file?.add(text)
  }

  /// The handle's kind, and a number that stands for it in this trace.
  mutating func mask(_ handle: Handle) -> [LogLine.Field] {
    var key = handle
    key.n = nil
    if handles.count >= PhoneTrace.limit { handles = [:] }
    let number = handles[key] ?? handles.count + 1
    handles[key] = number
    return [("handle", "#\(number)"), ("kind", handle.k.rawValue)]
  }
}
