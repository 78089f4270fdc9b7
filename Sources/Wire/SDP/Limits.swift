// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// A whole description. A browser's offer with video is about 8 KiB.
  static let descriptionBytes = 32_768
  static let lineBytes = 4_096
  static let lines = 1_000
  static let mediaSections = 16
  static let attributesPerSection = 400
  /// Formats of one m-line; there are 128 payload types.
  static let formats = 128
  /// Candidates read from one section; more are ignored.
  static let candidates = 64
  /// Parameters read from one fmtp line; more are ignored.
  static let formatParameters = 32
  /// Bytes of a fmtp, mid or format that an answer repeats.
  static let echoedBytes = 256
  /// ice-char lengths, RFC 8839 §5.4.
  static let ufragLength = 4...256
  static let passwordLength = 22...256
  /// `a=crypto` lines read from one section; more are ignored. Bytes and session parameters of one line, and bytes of a
  /// master key identifier (RFC 4568 §6.1).
  static let cryptoLines = 32
  static let cryptoLineBytes = 512
  static let sessionParameters = 16
  static let identifierBytes = 1...128
  /// Values of `maxplaybackrate` in Hz and `maxaveragebitrate` in bit/s that are used (RFC 7587 §6.1); others are ignored.
  static let opusPlaybackRates = 8_000...48_000
  static let opusBitrates = 6_000...510_000
  /// Packet times that are sent, in milliseconds; others become 20.
  static let packetTimes = 10...60
}
