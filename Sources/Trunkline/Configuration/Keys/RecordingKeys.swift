public import CallModel
import TrunklineMediaSession

extension Settings {
  /// `recording:`.
  public struct Recording: Sendable, Equatable {
    public static let leastFreeMebibytes = 1_024
    /// Absolute path of the folder with the files.
    public var folder = "recordings"
    /// Free space to keep on the folder's file system.
    public var leastFreeMebibytes = Self.leastFreeMebibytes
    public var rules = RecordingRules()
    /// Absolute path of the file from which `rules.notice` was read.
    public var notice: String?

    public static func == (one: Self, other: Self) -> Bool {
      (one.folder, one.leastFreeMebibytes, one.notice) == (other.folder, other.leastFreeMebibytes, other.notice)
        && (one.rules.when, one.rules.format) == (other.rules.when, other.rules.format)
    }
  }
}

/// `recording: { folder: recordings, when: api, format: ogg, notice: notice.wav, minimum_free_mib: 1024 }`.
extension ConfigurationKeys {
  static let recording = KeyTable<Settings.Recording>(
    .init(), .atRestart,
    about: "Ask for the consent that your law requires before you turn it on; see [recording](../integrate/recording.md).",
    [
      .path(
        "folder", \.folder, kind: "path of a folder",
        "Where the files are written; made if it is not there, in a folder that is."),
      .choice(
        "when", \.rules.when,
        "`on`: each call from its connect on. `api`: calls of users with `record`, and those that a program starts. `off`: none."),
      .choice(
        "format", \.rules.format,
        "`ogg`: Opus, about 20 MB an hour. `wav`: 16 bit, 115 MB an hour, or 230 MB where a call is wideband."),
      .init(
        "notice", .file("WAV"), default: .none("no notice"),
        "Played to the trunk when a recording begins; it is in the file, too."
      ) { field, out in
        guard field.isWritten else { return }
        out.notice = field.string().map(field.parser.resolve)
        out.rules.notice = field.audio(limit: Limits.recordingBytes).map { Announcement($0) }
        if out.rules.notice?.milliseconds == 0 { field.problem("\(out.notice ?? "") is empty") }
      },
      .integer(
        "minimum_free_mib", \.leastFreeMebibytes, Limits.freeMebibytes,
        "MiB of its file system that are left free: recordings end before that, and calls continue."),
    ])
}
