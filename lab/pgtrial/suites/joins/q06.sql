-- Estimate too low: those who visit often buy often, on the same days, and joins assume that both are average.
select count(*) as pairs, count(distinct p.person_id) as people, sum(s.amount) as amount
from people p
join visits v on v.person_id = p.person_id
join sales s on s.person_id = p.person_id and s.sold_on = v.visited_on
where v.campaign is not null
  and s.coupon_id is not null
  and p.referrer_id is null;
