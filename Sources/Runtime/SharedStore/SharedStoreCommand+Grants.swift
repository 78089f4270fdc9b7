import Bytes
import CallFlow
import Cluster
import RESP

// What login tokens grant.

extension SharedStoreCommand {
  init(ofGrants request: SharedStoreRequest, _ keys: SharedStoreKeys, _ forged: [String: [UInt8]]) {
    let tag = SharedStoreKeys.grants
    let (rows, order, seen, state) = (
      keys.key(tag, "rows"), keys.key(tag, "order"), keys.key(tag, "seen"), keys.key(tag, "state")
    )
    switch request {
    case .putGrants(let grants):
      var arguments = [
        bytes(Cluster.Limits.grants), milliseconds(Cluster.Limits.grantsKept),
        bytes(String(UInt64.random(in: 0 ... .max), radix: 36)),
      ]
      for grant in grants {
        // as the script puts them together
        let head = bytes("{\"t\":\(grant.issuedAt),\"m\":\(grant.rank),\"s\":\(grant.seen),")
        let row = keys.sealed(head + ValueCoding.encode(StoredGrant(grant)).dropFirst(), rows, grant.user)
        arguments += [
          bytes(grant.user), bytes(grant.issuedAt), bytes(grant.rank), bytes(grant.seen), Array(row.dropFirst(head.count)),
          forged[grant.user] ?? [],
        ]
      }
      self.init(script: .putGrants, tag, [rows, order, seen, state], arguments, .grantsPut)
    case .grants(let since):
      self.init(
        script: .grants, tag, [rows, order, state], [bytes(since), bytes(Cluster.Limits.grantsPerRead)], .grants)
    default: preconditionFailure("a request that is of no grant")
    }
  }
}
