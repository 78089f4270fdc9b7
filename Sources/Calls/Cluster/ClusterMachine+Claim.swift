import Bytes
import CallFlow

// `call.start`: whose it is, and whether there is room.

extension ClusterMachine {
  /// First whose it is, and only then the rest: another node's call of this UUID must not be touched.
  mutating func claim(_ claim: ClaimQuestion, _ turn: inout Turn) {
    var question = newQuestion(.claim(claim))
    let isAsked = ask(
      .claimStart(claim.call, device: claim.device, at: incarnation), .start, call: claim.call, of: &question, &turn)
    if !isAsked { return goOn(claim, question, &turn) }
    pose(question, &turn)
  }

  /// Whether there is room for a call that is ours, or of which nobody can say.
  mutating func goOn(_ claim: ClaimQuestion, _ question: Question, _ turn: inout Turn) {
    var question = question
    question.hasStart = true
    enter(claim.call, [claim.device.user], .outgoing, &question)
    if let most = claim.mostOfTrunk { count(claim.call, claim.trunk, most, &question, &turn) }
    if let most = claim.mostPerHour {
      ask(.take(user: claim.device.user, most: most), .hour, call: claim.call, of: &question, &turn)
    }
    askPlaces(claim.call, [claim.device.user], .outgoing, &question, &turn)
    pose(question, &turn)
  }

  mutating func answer(_ claim: ClaimQuestion, _ question: Question, _ turn: inout Turn) {
    var question = question
    if !question.hasStart, question.verdicts[.start] != false {
      // Nobody said in time whose it is: the call is made, and entered when the engine hears again.
      enter(claim.call, [claim.device.user], .outgoing, &question)
      if claim.mostOfTrunk != nil { count(claim.call, claim.trunk, &question) }
    }
    if question.verdicts[.start] == false, let holder = question.holder {
      statistics.claims[.elsewhere, default: 0] += 1
      undo(question, claim.call, &turn)
      let node = (peers[holder] ?? suspects[holder]?.lease)?.url
      return turn.actions.append(.claimed(claim.call, .atOtherNode(holder.node, url: node)))
    }
    let user = claim.device.user
    var reason = refusal(
      claim.call, users: [user], trunk: claim.mostOfTrunk.map { (claim.trunk, $0) }, most: claim.mostOfUser,
      mostOutgoing: claim.mostOutgoing, question, &turn)
    if reason == nil, question.verdicts[.hour] == false {
      statistics.userRefusals += 1
      reason = .userRate
    }
    if let reason {
      statistics.claims[.refused, default: 0] += 1
      undo(question, claim.call, &turn)
      return turn.actions.append(.claimed(claim.call, .refused(reason)))
    }
    markUnheard(question, claim.call, &turn)
    statistics.claims[question.verdicts[.start] == nil ? .unknown : .here, default: 0] += 1
    turn.actions.append(.claimed(claim.call, .granted))
  }
}
