-- Estimate too low: zip, city, province and country follow from each other, and each condition counts again.
select p.plan, count(*) as visits, sum(v.pages) as pages
from places pl
join people p on p.place_id = pl.place_id
join visits v on v.person_id = p.person_id
where pl.country = 'country 07'
  and pl.province = 'province 036'
  and pl.city in ('city 0360', 'city 0361', 'city 0362')
group by p.plan
order by p.plan;
