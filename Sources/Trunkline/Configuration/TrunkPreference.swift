import RTP

/// `prefer` of a trunk: which of its `codecs` go first in our offers and answers, and whether apps get the trunk's own.
enum TrunkPreference: String, CaseIterable {
  /// The order is that of `codecs`; apps are offered the trunk's codec first.
  case relay
  /// The order is that of `codecs`.
  case transcode
  case wide
  case cheap

  /// What goes before the rest of `codecs`; nil: nothing does.
  var first: ((AudioEncoding) -> Bool)? {
    switch self {
    case .relay, .transcode: nil
    case .wide: { $0.band == .wideband }
    case .cheap: { $0 == .pcmu || $0 == .pcma }
    }
  }

  /// Those that `first` takes, for people.
  var names: String { first.map { AudioEncoding.allCases.filter($0).map(\.name).joined(separator: " or ") } ?? "" }
}
