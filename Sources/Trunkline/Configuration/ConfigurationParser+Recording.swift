public import CallFlow
import TrunklineAudioCodecs
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

extension ConfigurationParser {
  /// `recording: { folder: recordings, when: api, format: ogg, notice: notice.wav, minimum_free_mib: 1024 }`.
  func recordingSection(_ top: Section) -> Settings.Recording? {
    guard top.has("recording") else { return nil }
    let row = top.section("recording")
    var out = Settings.Recording()
    out.folder = resolve(row.string("folder") ?? out.folder)
    out.leastFreeMebibytes = row.integer("minimum_free_mib", in: Limits.freeMebibytes, default: out.leastFreeMebibytes)
    out.rules.when = row.choice("when", default: out.rules.when)
    out.rules.format = row.choice("format", default: out.rules.format)
    if row.has("notice") {
      out.notice = row.string("notice").map(resolve)
      out.rules.notice = audio(row, "notice", limit: Limits.recordingBytes).map { Announcement($0) }
      if out.rules.notice?.milliseconds == 0 { problem(row.path("notice"), "\(out.notice ?? "") is empty") }
    }
    return out
  }
}
