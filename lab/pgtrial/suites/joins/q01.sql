-- Estimate too low: the filter on places finds the city where most people are, and the join assumes an average one.
select s.channel, count(*) as sales, sum(s.amount) as amount
from places pl
join people p on p.place_id = pl.place_id
join sales s on s.person_id = p.person_id
where pl.city = 'city 0360'
  and s.sold_on >= date '2020-01-01'
  and s.sold_on < date '2021-01-01'
group by s.channel
order by s.channel;
