import CallFlow
import CallModel
import Configuration
import Control
import Logging
import MediaStreams
import RecordingFiles
import TrunklinePlatform

/// The users of calls' audio outside the media threads: the recorder, and the streams, which also send audio.
final class AudioComponent: AudioOutput, Sendable {
  /// Nil: nothing is recorded.
  private let recorder: Recorder?
  private let streams: Streams

  init(_ settings: Settings, inbox: Inbox, logs: Logs) throws {
    recorder = try settings.recording.flatMap { recording in
      guard recording.rules.when != .off else { return nil }
      let folder = RecordingFolder(path: recording.folder, leastFree: Int64(recording.leastFreeMebibytes) << 20)
      return try Recorder(folder, logger: logs.logger("recorder")) { inbox.post(.recorded($0)) }
    }
    streams = try Streams(authorities: settings.routes.streamAuthorities, logger: logs.logger("streams")) {
      inbox.post(.stream($0))
    }
  }

  func perform(_ command: RecordingCommand) { recorder?.perform(command) }
  func perform(_ command: StreamCommand) { streams.perform(command) }

  func reload(_ new: Settings) { streams.replace(authorities: new.routes.streamAuthorities) }

  var metrics: [MetricFamily] { (recorder?.metrics ?? []) + streams.metrics }
  var queues: [MailboxReading] { (recorder.map { [$0.queue] } ?? []) + [streams.queue] }

  func stop() {
    streams.stop()
    recorder?.stop()
  }
}
