import AppServer
import Foundation

/// The body of an action: a JSON object of known keys, with texts, flags and an object of texts. A malformed body or an
/// unknown key throws a `badRequest` that names the fault.
struct ActionBody {
  private enum Value: Decodable {
    case text(String)
    case flag(Bool)
    case texts([String: String])
    case null

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        self = .null
      } else if let flag = try? value.decode(Bool.self) {
        self = .flag(flag)
      } else if let texts = try? value.decode([String: String].self) {
        self = .texts(texts)
      } else {
        self = .text(try value.decode(String.self))
      }
    }
  }

  /// Octets of a body, and of a text in it.
  static let bodyBytes = 4_096
  static let textBytes = 256

  private let fields: [String: Value]

  init(_ bytes: [UInt8], mayBeEmpty: Bool = false, _ keys: [String]) throws(APIError) {
    if mayBeEmpty, bytes.isEmpty {
      fields = [:]
      return
    }
    guard bytes.count <= Self.bodyBytes else { throw APIError(.badRequest, "the body has more than \(Self.bodyBytes) octets") }
    guard let read = try? JSONDecoder().decode([String: Value].self, from: Data(bytes)) else {
      throw APIError(.badRequest, "the body must be a JSON object of strings and flags; keys: \(keys.joined(separator: ", "))")
    }
    guard read.keys.allSatisfy(keys.contains) else {
      throw APIError(.badRequest, "the body has an unknown key; known keys: \(keys.joined(separator: ", "))")
    }
    fields = read
  }

  /// Nil: absent, or null.
  func text(_ key: String) throws(APIError) -> String? {
    switch fields[key] {
    case .text(let text) where (1...Self.textBytes).contains(text.utf8.count): return text
    case nil, .null: return nil
    default: throw APIError(.badRequest, "\(key): a string of 1 to \(Self.textBytes) octets")
    }
  }

  /// Nil: absent, or null.
  func texts(_ key: String) throws(APIError) -> [String: String]? {
    switch fields[key] {
    case .texts(let texts): return texts
    case nil, .null: return nil
    default: throw APIError(.badRequest, "\(key): an object of strings")
    }
  }

  func has(_ key: String) -> Bool { fields[key] != nil }

  func flag(_ key: String) throws(APIError) -> Bool {
    guard case .flag(let flag) = fields[key] else { throw APIError(.badRequest, "\(key): true or false") }
    return flag
  }
}
