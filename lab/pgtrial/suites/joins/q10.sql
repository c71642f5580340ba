-- Estimate too low: nothing is known of expressions, for which one row of 200 is assumed.
select p.plan, count(*) as visits, sum(v.pages) as pages
from people p
join visits v on v.person_id = p.person_id
join places pl on pl.place_id = p.place_id
where p.person_id % 4 = 0
  and substring(pl.zip from 1 for 2) = '11'
  and extract(month from v.visited_on) in (11, 12)
group by p.plan
order by p.plan;
