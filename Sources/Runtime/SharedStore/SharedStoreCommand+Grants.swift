import CallModel
import Cluster
import RESP
import TrunklineBytes

/// Grants of login tokens. A user's row has two lines: the numbers that the user has, which the script writes, and the token's
/// claims, which the node has signed. So a script can remove a number from a user without a signature, and no user gets a number
/// that a token did not name.
extension SharedStoreCommand {
  init(ofGrants request: SharedStoreRequest, _ keys: SharedStoreKeys, _ forged: [String: [UInt8]]) {
    let tag = SharedStoreKeys.grants
    let (rows, order, seen, state, numbers) = (
      keys.grantRows, keys.key(tag, "order"), keys.key(tag, "seen"), keys.key(tag, "state"), keys.key(tag, "numbers")
    )
    switch request {
    case .putGrants(let grants):
      var arguments = [
        bytes(Cluster.Limits.grants), milliseconds(Cluster.Limits.grantsKept),
        bytes(String(UInt64.random(in: 0 ... .max), radix: 36)), bytes(Cluster.Limits.grantsPerRead), bytes(grants.count),
      ]
      for grant in grants {
        // the script reads them at the beginning
        let head = bytes("{\"t\":\(grant.issuedAt),\"s\":\(grant.seen),")
        let named = grant.grant == nil ? "-" : grant.canonicalNumbers.joined(separator: " ")
        arguments += [
          bytes(grant.user), bytes(named),
          keys.sealed(head + ValueCoding.encode(StoredGrant(grant)).dropFirst(), at: rows, field: grant.user),
        ]
      }
      for (user, row) in forged { arguments += [bytes(user), row] }
      self.init(
        script: .putGrants, tag: tag, keys: [rows, order, seen, state, numbers], arguments: arguments, reading: .grantsPut)
    case .grants(let since):
      self.init(
        script: .grants, tag: tag, keys: [rows, order, state], arguments: [bytes(since), bytes(Cluster.Limits.grantsPerRead)],
        reading: .grants)
    default: preconditionFailure("a request that is of no grant")
    }
  }
}

extension SharedStoreKeys {
  /// The lines of a user's row; nil: it is not a row, or its token's line does not have our signature.
  func grantLines(_ row: [UInt8], of user: String) -> (held: ArraySlice<UInt8>, token: [UInt8])? {
    let end = row.firstIndex(of: 10)
    let token = end.map { Array(row[($0 + 1)...]) } ?? row
    guard isGenuine(token, at: grantRows, field: user), let end else { return nil }
    return (row[..<end], token)
  }
}
