public import TrunklineMediaSession

/// A file that the audio of a call is to be written to.
public struct CallRecording: Sendable {
  public var call: CallID
  /// Its name once it is complete.
  public var file: String
  /// Where the audio comes from.
  public var tap: AudioTap
  /// The facts for the event of its end.
  public var facts: CallEventFacts
  public init(call: CallID, file: String, tap: AudioTap, facts: CallEventFacts) {
    (self.call, self.file, self.tap, self.facts) = (call, file, tap, facts)
  }
}

/// A command to the recorder.
public enum RecordingCommand: Sendable {
  case start(CallRecording)
  case stop(file: String, RecordingReport.End)
}

/// A recording was closed: whatever ended it, the file is complete and has its name.
public struct RecordingReport: Sendable {
  public enum End: String, Sendable, Encodable, CaseIterable {
    case callEnded
    /// By a program.
    case stopped
    /// The disk, or the share of it for recordings, is full.
    case diskFull
    case failed
  }
  public var facts: CallEventFacts
  public var file: String
  public var end: End
  public var milliseconds: Int
  public var bytes: Int
  /// Frames of 20 ms that the recorder missed; the file has silence in their place.
  public var dropped: Int

  public init(_ facts: CallEventFacts, file: String, end: End, milliseconds: Int, bytes: Int, dropped: Int) {
    (self.facts, self.file, self.end) = (facts, file, end)
    (self.milliseconds, self.bytes, self.dropped) = (milliseconds, bytes, dropped)
  }
}

/// What is recorded, and how.
public struct RecordingRules: Sendable {
  public enum Format: String, Sendable, CaseIterable { case wav, ogg }
  public enum When: String, Sendable, CaseIterable {
    /// Every call, from its connect on.
    case on
    /// Calls of users that are recorded, and those for which a program requests it.
    case api
    /// None.
    case off
  }
  public var when = When.api
  public var format = Format.ogg
  /// The trunk's side hears this as a recording begins.
  public var notice: Announcement?
  public init(when: When = .api, format: Format = .ogg, notice: Announcement? = nil) {
    (self.when, self.format, self.notice) = (when, format, notice)
  }
}

extension CallEventFacts {
  public struct Recording: Sendable, Equatable, Encodable {
    public var file: String
    public var end: String
    public var ms: Int
    public var bytes: Int
    /// Nil if there are none.
    public var droppedFrames: Int?

    package init(file: String, end: String, ms: Int, bytes: Int, droppedFrames: Int? = nil) {
      (self.file, self.end, self.ms, self.bytes, self.droppedFrames) = (file, end, ms, bytes, droppedFrames)
    }
  }
}
