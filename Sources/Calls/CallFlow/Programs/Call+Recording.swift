import CallModel
import TrunklineAppProtocol
import TrunklineMediaSession

/// Recording of a call. The call continues even if the recording fails.
extension Call {
  /// Returns why it is refused; nil: the recording is in the requested state.
  mutating func setRecording(_ isOn: Bool, _ step: inout Step) -> Failure? {
    if isTest { return CallMachine.notInTest }
    guard let rules = step.configuration.recording, rules.when != .off else {
      return Failure(.unsupported, msg: "recordings are off: see the section recording")
    }
    guard state == .connected else { return Failure(.badState, msg: "only a connected call is recorded") }
    guard isOn != recordings.isRunning else { return nil }
    guard isOn else {
      endRecording(.stopped, &step)
      return nil
    }
    guard let file = recordings.start(id, suffix: rules.format.rawValue) else {
      return Failure(.tooMany, msg: "the call has \(Limits.recordingsPerCall) recordings")
    }
    let tap = AudioTap()
    step.output.actions.append(.recording(.start(CallRecording(call: id, file: file, tap: tap, facts: facts))))
    step.media(.tap(session, tap))
    mark(.recording, detail: file, &step)
    if let notice = rules.notice {
      audio.fileEnded()
      step.media(.play(session, notice))
    }
    return nil
  }

  /// Closes the file.
  mutating func endRecording(_ end: RecordingReport.End, _ step: inout Step) {
    guard let file = recordings.stop() else { return }
    if isLive { step.media(.tap(session, nil)) }
    step.output.actions.append(.recording(.stop(file: file, end)))
  }
}

extension CallMachine {
  /// A call was connected: it is recorded if all are, or if its user's calls are.
  mutating func connected(_ id: CallID, _ step: inout Step) {
    guard let rules = configuration.recording, rules.when != .off, let call = calls[id] else { return }
    guard rules.when == .on || routing.user(call.users.owner)?.isRecorded == true else { return }
    change(id, &step) { _ = $0.setRecording(true, &$1) }
  }

  /// A file was closed, maybe after its call was removed, or during the call because the disk is full.
  mutating func recorded(_ report: RecordingReport, _ step: inout Step) {
    change(report.facts.call, &step) { call, step in
      // the tap no longer has a reader
      if call.isLive, call.recordings.closed(report.file) { step.media(.tap(call.session, nil)) }
    }
    guard configuration.events.isOn else { return }
    var facts = report.facts
    facts.recording = .init(
      file: report.file, end: report.end.rawValue, ms: report.milliseconds, bytes: report.bytes,
      droppedFrames: report.dropped > 0 ? report.dropped : nil)
    step.output.actions.append(.event(GatewayEvent(.callRecorded, at: step.wallNow, .call(facts))))
  }
}
