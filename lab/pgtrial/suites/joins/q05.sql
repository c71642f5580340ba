-- Estimate too low: a campaign is of a hundred days, so that its name says what the dates say.
select pl.country, count(*) as visits, sum(v.pages) as pages
from visits v
join people p on p.person_id = v.person_id
join places pl on pl.place_id = p.place_id
where v.campaign = 'campaign 14'
  and v.visited_on >= date '2019-11-01'
  and v.visited_on < date '2020-02-09'
  and p.income >= 8
  and p.plan in ('plus', 'pro')
group by pl.country
order by visits desc, pl.country
limit 10;
