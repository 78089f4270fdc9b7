/// The named limits of this module: how big a configuration may be, and the ranges of its numbers.
enum Limits {
  /// Bytes of a bearer token for a stream's peer.
  static let streamTokenBytes = 4_096
  /// Bytes of a configuration file, and of a key or password file.
  static let fileBytes = 4 << 20
  static let secretBytes = 64 << 10
  /// Bytes of a file for held calls: 2 minutes of 16 kHz and its headers.
  static let audioBytes = 4 << 20
  static let trunks = 1_000
  static let users = 100_000
  static let numbersPerUser = 100
  /// Numbers that a login token may grant.
  static let grantedNumbers = 1...100
  /// The range of `users[].webhook.cache`, and its default.
  static let userCacheSeconds = 1...86_400
  static let usualUserCacheSeconds = 60
  static let turnURLs = 8
  /// Certificates for further names of the SIP listener, and names that a trunk's certificate may be for.
  static let certificates = 100
  static let expectedNames = 16
  /// Tokens of the admin API, the characters of one, and requests a second.
  static let apiTokens = 100
  static let apiTokenBytes = 16...512
  static let playedFiles = 100
  /// Characters of the name and bytes of the logo that the pages show.
  static let brandName = 40
  static let logoBytes = 64 << 10
  static let apiRate = 1...1_000
  static let routes = 10_000
  static let historyPerUser = 0...100_000
  static let historyKeep = Duration.seconds(3_600) ... .seconds(3_650 * 86_400)
  static let edges = 100
  /// The least bytes of the key that all nodes share.
  static let clusterKeyBytes = 32
  /// As the app protocol bounds its texts.
  static let accountBytes = 128
  static let realmBytes = 128
  /// Bytes of a recording that is played to callers: 10 minutes of 48 kHz stereo.
  static let recordingBytes = 120_000_000
  /// Free space to keep on the file system with recordings.
  static let freeMebibytes = 0...1_000_000_000
  /// Final responses that refuse a call.
  static let refusals = 400...699
  static let mediaThreads = 1...64
  /// Hosts that programs may send calls to, and networks that their names may resolve to.
  static let streamHosts = 100
  /// RFC 7587 §6.1: the range of `maxaveragebitrate`.
  static let opusBitrate = 6_000...510_000
  static let calls = 1...100_000
  static let trunkPorts = 2
  /// RFC 4028 §4 forbids less than 90: smaller values are for a lab. A day has the effect of no timer.
  static let sessionSeconds = 4...86_400
  /// Fixed header fields of one trunk.
  static let extraFields = 16
}
