import TrunklineRTP

/// `prefer` of a trunk: which of its `codecs` are first in our offers and answers, and whether apps are offered the trunk's own.
enum TrunkPreference: String, CaseIterable {
  /// In the order of `codecs`; apps are offered the trunk's codec first.
  case relay
  /// In the order of `codecs`.
  case transcode
  case wide
  case cheap

  /// Selects the encodings before the rest of `codecs`; nil: none.
  var first: ((AudioEncoding) -> Bool)? {
    switch self {
    case .relay, .transcode: nil
    case .wide: { $0.band == .wideband }
    case .cheap: { $0 == .pcmu || $0 == .pcma }
    }
  }

  /// The names of the encodings that `first` selects, for people.
  var names: String { first.map { AudioEncoding.allCases.filter($0).map(\.name).joined(separator: " or ") } ?? "" }
}
