-- Estimate nearly right: those who have referred most others are known, and joined with as many as each has.
select first.plan, count(*) as chains, count(distinct first.person_id) as first_people
from people first
join people second on second.referrer_id = first.person_id
join people third on third.referrer_id = second.person_id
where first.income between 4 and 7
  and first.plan = 'basic'
  and third.referrer_id is not null
group by first.plan
order by first.plan;
