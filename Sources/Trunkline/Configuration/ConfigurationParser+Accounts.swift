import CallModel
import TrunklineSIPDialogs

/// Trunks that share addresses.
extension ConfigurationParser {
  /// Several accounts at one carrier are distinguished by the contact that the carrier calls, several trunks with `peers: any` by
  /// their credentials: each is known by the name of the first.
  func linkAccounts(_ trunks: inout [Settings.Trunk]) {
    var carriers: [String: Int] = [:]
    var contacts: [String: String] = [:]
    var firstAny: Int?
    var guests: [String: String] = [:]
    for (index, trunk) in trunks.enumerated() {
      let path = "trunks[\(index)]"
      if let credentials = trunk.routing.rules.peerCredentials, !credentials.username.isEmpty {
        let key = "\(credentials.username) \(trunk.routing.rules.realm ?? "")"
        if let other = guests.updateValue(trunk.name, forKey: key) {
          problem(
            at: path + ".peer_auth",
            "trunk \"\(other)\" also accepts any peer of this username and realm: give one another username")
        }
        if let firstAny { trunks[index].routing.rules.peersKnownAs = trunks[firstAny].name } else { firstAny = index }
      } else if let settings = trunk.routing.settings, let registration = settings.registration, !registration.contactUser.isEmpty
      {
        let host = settings.server.host.lowercased()
        if let other = contacts.updateValue(trunk.name, forKey: "\(registration.contactUser)@\(host)") {
          problem(
            at: path + ".register",
            "trunk \"\(other)\" registers \(registration.contactUser) at \(host), too, so that the trunk of a call cannot be determined: give one another contact_user"
          )
        }
        if let first = carriers[host] {
          trunks[index].routing.rules.peersKnownAs = trunks[first].name
        } else {
          carriers[host] = index
        }
      }
    }
  }
}
