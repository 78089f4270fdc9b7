import Configuration
import Control
import Logging
import Platform
import RecordingFiles

/// Who gets calls' audio out of the media threads: the recorder.
final class AudioSide: Sendable {
  /// Nil: nothing is recorded.
  private let recorder: Recorder?

  init(_ settings: Settings, inbox: Inbox, logs: Logs) throws {
    recorder = try settings.recording.flatMap { recording in
      guard recording.rules.when != .off else { return nil }
      let folder = RecordingFolder(path: recording.folder, leastFree: Int64(recording.leastFreeMebibytes) << 20)
      return try Recorder(folder, logger: logs.logger("recorder")) { inbox.post(.recorded($0)) }
    }
  }

  func join(_ outputs: inout ControlOutputs) {
    outputs.recording = { [recorder] in recorder?.perform($0) }
  }

  var metrics: [MetricFamily] { recorder?.metrics ?? [] }
  var queues: [MailboxReading] { recorder.map { [$0.queue] } ?? [] }

  func stop() { recorder?.stop() }
}
