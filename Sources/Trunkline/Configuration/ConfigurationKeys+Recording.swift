import CallFlow

extension ConfigurationKeys {
  static let recording: [ConfigurationSection] = [
    .init(
      "recording", isAppliedBySIGHUP: false,
      "Ask for the consent that your law requires before you turn it on; see [recording](../integrate/recording.md).",
      [
        .init(
          "folder", .text("path of a folder"), .value(Settings.Recording().folder),
          "Where the files are written; made if it is not there, in a folder that is."),
        .init(
          "when", .oneOf(RecordingRules.When.self), .value(RecordingRules().when.rawValue),
          "`on`: each call from its connect on. `api`: calls of users with `record`, and those that a program starts. `off`: none."
        ),
        .init(
          "format", .oneOf(RecordingRules.Format.self), .value(RecordingRules().format.rawValue),
          "`ogg`: Opus, about 20 MB an hour. `wav`: 16 bit, 115 MB an hour, or 230 MB where a call is wideband."),
        .init(
          "notice", .file("WAV"), .none("no notice"),
          "Played to the trunk when a recording begins; it is in the file, too."
        ),
        .init(
          "minimum_free_mib", .integer(Limits.freeMebibytes), .value("\(Settings.Recording.leastFreeMebibytes)"),
          "MiB of its file system that are left free: recordings end before that, and calls continue."),
      ])
  ]
}
